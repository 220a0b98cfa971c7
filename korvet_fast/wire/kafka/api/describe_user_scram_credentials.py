"""DescribeUserScramCredentials (key 50), version 0: which users there are, and by which mechanisms they log in.

All users if none is named. Of one that is named twice nothing is told, as in Kafka (ScramImage).
"""

from collections import Counter

from korvet_fast.core.authentication.users import Credentials
from korvet_fast.errors import StoreError
from korvet_fast.wire.kafka.errors import DUPLICATE_RESOURCE, RESOURCE_NOT_FOUND, shorten, translate
from korvet_fast.wire.kafka.session import Session, Values


async def describe_user_scram_credentials(session: Session, request: Values, version: int) -> Values:
    pace = session.pace()
    try:
        users = await session.broker.users.list()
    except StoreError as error:
        code, message = translate(error)
        return {"error_code": code, "error_message": message}
    if pace.due():
        await pace.turn()
    asked = Counter(user["name"] for user in request["users"] or ()) or dict.fromkeys(users, 1)
    return {"results": await pace.map(lambda row: _describe(row[0], row[1], users.get(row[0])), list(asked.items()))}


def _describe(name: str, times: int, found: Credentials | None) -> Values:
    if times > 1:
        return _refuse(name, DUPLICATE_RESOURCE, "is named more than once in this request")
    if found is None:
        return _refuse(name, RESOURCE_NOT_FOUND, "does not exist")
    credentials = sorted((mechanism.number, each.iterations) for mechanism, each in found.items())
    return {
        "user": name,
        "credential_infos": [{"mechanism": number, "iterations": iterations} for number, iterations in credentials],
    }


def _refuse(name: str, code: int, why: str) -> Values:
    return {"user": name, "error_code": code, "error_message": shorten(f"the user {name!r} {why}")}
