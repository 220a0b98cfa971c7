"""DescribeClientQuotas (key 48), versions 0-1: no client has a quota here, so whatever is asked for, none is found.

0; 1 flexible. A client that takes much waits for others all the same (ARCHITECTURE.md, "Who has to wait for whom"), but
no number can be set for it.
"""

from korvet_fast.wire.kafka.session import Session, Values


async def describe_client_quotas(session: Session, request: Values, version: int) -> Values:
    return {"entries": []}
