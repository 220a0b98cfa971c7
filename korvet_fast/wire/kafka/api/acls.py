"""DescribeAcls (key 29), CreateAcls (30), DeleteAcls (31), versions 1-3: nobody's rights are restricted here.

1 prefixes as resources; 2 flexible; 3 users as resources. All are refused with SECURITY_DISABLED, as Kafka refuses them
without an authorizer: tools that list ACLs know this code, and go on without them.
"""

from typing import Final

from korvet_fast.wire.kafka.errors import SECURITY_DISABLED
from korvet_fast.wire.kafka.session import Session, Values

_REFUSED: Final[Values] = {
    "error_code": SECURITY_DISABLED,
    "error_message": "No Authorizer is configured: this broker keeps no ACLs, and everybody may do everything.",
}


async def describe_acls(session: Session, request: Values, version: int) -> Values:
    return dict(_REFUSED)


async def create_acls(session: Session, request: Values, version: int) -> Values:
    return {"results": [_REFUSED] * len(request["creations"])}


async def delete_acls(session: Session, request: Values, version: int) -> Values:
    return {"filter_results": [_REFUSED] * len(request["filters"])}
