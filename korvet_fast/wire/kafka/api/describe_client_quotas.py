"""DescribeClientQuotas (key 48), versions 0-1: no client has a quota here, so whatever is asked for, none is found.

0; 1 flexible. Who takes much waits for others all the same (ARCHITECTURE.md, "Who has to wait for whom"); that is no
number that could be set for a client.
"""

from korvet_fast.wire.kafka.session import Session, Values


async def describe_client_quotas(session: Session, request: Values, version: int) -> Values:
    return {"entries": []}
