"""DescribeUserScramCredentials (key 50), version 0: there are no users here.

A user that is named is not found; without names, the list of all users is empty.
"""

from korvet_fast.wire.kafka.errors import RESOURCE_NOT_FOUND, shorten
from korvet_fast.wire.kafka.session import Session, Values


async def describe_user_scram_credentials(session: Session, request: Values, version: int) -> Values:
    names = dict.fromkeys(user["name"] for user in request["users"] or ())
    rows = [
        {"user": name, "error_code": RESOURCE_NOT_FOUND, "error_message": shorten(f"there is no user {name!r}")}
        for name in names
    ]
    return {"results": rows}
