"""REPLICA_FETCH and SET_PARTITION_ROLE: of peers only, and a broker without peers takes them from nobody.

Whoever could send them could forge that a record was copied, or stop a partition.
"""

from korvet_fast.wire.text.arguments import Arguments
from korvet_fast.wire.text.errors import UNAUTHORIZED
from korvet_fast.wire.text.session import Payload, Refused, Session


async def refuse_stranger(session: Session, arguments: Arguments) -> Payload:
    raise Refused(UNAUTHORIZED, "this is for the broker's peers, and it has none")
