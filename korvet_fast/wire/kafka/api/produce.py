"""Produce (key 0), versions 3-11: one record batch of format v2 to each partition named.

3 batches v2; 4 nothing new; 5 log start offset; 6 nothing new; 7 zstd; 8 error messages; 9 flexible; 10 and 11 nothing
that one broker has to say (a new leader's address; transactions). Versions 0-2 carry older formats and are not served,
though ApiVersions names them (see `routes`).
Missing on purpose: transactions (refused with a reason) and the indexes of single bad records (`record_errors` is
empty: a batch is taken or refused whole).
A partition named more than once is refused with INVALID_REQUEST; Kafka takes the last row and forgets the others.
"""

from typing import Any, Final, NoReturn

from korvet_fast.core.produce import service
from korvet_fast.core.produce.acks import Outcome
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.dialect import CloseConnection
from korvet_fast.wire.kafka.api.repeated import find_refusal
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.session import Session, Values

_ZSTD_SINCE: Final = 7  # version


async def produce(session: Session, request: Values, version: int) -> Values | None:
    topics, acks, timeout_ms = request["topic_data"], request["acks"], request["timeout_ms"]
    zstd, transaction = version >= _ZSTD_SINCE, request["transactional_id"]
    results: list[list[Any]]
    if transaction is None and len(topics) == 1 and len(topics[0]["partition_data"]) == 1:
        name, (batch,) = topics[0]["name"], topics[0]["partition_data"]
        outcome = service.produce_one(session, name, batch, acks, timeout_ms, zstd)
        if not isinstance(outcome, tuple):
            outcome = await outcome
        if acks and not outcome[1]:
            return {"responses": [{"name": name, "partition_responses": [outcome]}]}
        results, failed = [[outcome]], bool(outcome[1])
    else:
        repeated = find_refusal(topics, "name", "partition_data", "index")
        batches = [(topic["name"], topic["partition_data"]) for topic in topics]
        refuse = repeated if transaction is None else _refuse_transaction
        results, failed = await service.produce(session, batches, acks, timeout_ms, zstd, refuse)
    if failed:
        session.broker.failed_produces += 1
    if acks == 0:
        if failed:
            _close(results)
        return None
    if failed:
        pace = session.pace()
        results = [await pace.map(_translate, outcomes) for outcomes in results]
    responses = [
        {"name": topic["name"], "partition_responses": outcomes}
        for topic, outcomes in zip(topics, results, strict=True)
    ]
    return {"responses": responses}


def _close(results: list[list[Outcome]]) -> NoReturn:
    """Close the connection: acks=0 has no reply for an error, and the producer then asks for metadata, as in Kafka."""
    error = next(error for outcomes in results for _, error, *_ in outcomes if error)
    raise CloseConnection(f"a produce with acks=0 failed: {translate(error)[1]}")


def _translate(outcome: Outcome) -> Outcome | Values:
    """A row of the answer. Outcomes without an error need no translation."""
    index, error, *_ = outcome
    if not error:
        return outcome
    code, message = translate(error)
    return {"index": index, "base_offset": -1, "error_code": code, "error_message": message}


def _refuse_transaction(_: str, __: int) -> KorvetError:
    return KorvetError(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactions are not served by this broker")
