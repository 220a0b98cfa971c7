"""Which of several quotas holds: the order that Kafka documents, for every set of quotas there can be."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.core.quotas.entity import DEFAULT, QuotaEntity, QuotaKey, check_quota, find_limit
from korvet_fast.errors import Errors, KorvetError

# https://kafka.apache.org/documentation/#design_quotasconfig: the order of precedence, and who shares each.
ORDER = (
    (QuotaEntity("ann", "app"), QuotaEntity("ann", "app")),
    (QuotaEntity("ann", DEFAULT), QuotaEntity("ann", "app")),
    (QuotaEntity("ann", None), QuotaEntity("ann", None)),
    (QuotaEntity(DEFAULT, "app"), QuotaEntity("ann", "app")),
    (QuotaEntity(DEFAULT, DEFAULT), QuotaEntity("ann", "app")),
    (QuotaEntity(DEFAULT, None), QuotaEntity("ann", None)),
    (QuotaEntity(None, "app"), QuotaEntity(None, "app")),
    (QuotaEntity(None, DEFAULT), QuotaEntity(None, "app")),
)
FOREIGN = (QuotaEntity("bob", "app"), QuotaEntity("ann", "other"), QuotaEntity("bob", None), QuotaEntity(None, "other"))


@given(
    st.sets(st.sampled_from(range(len(ORDER)))),
    st.sets(st.sampled_from(range(len(ORDER)))),
    st.sets(st.sampled_from(FOREIGN)),
)
def test_the_first_level_that_has_the_limit_holds(here: set[int], other: set[int], foreign: set[QuotaEntity]) -> None:
    quotas = {entity: {QuotaKey.PRODUCE: 1000.0} for entity in foreign}
    for level, (entity, _) in enumerate(ORDER):
        quotas[entity] = {QuotaKey.PRODUCE: float(level + 1)} if level in here else {}
        if level in other:  # a level that limits something else does not hide those behind it
            quotas[entity] = {**quotas[entity], QuotaKey.FETCH: 2000.0}
    limit = find_limit(quotas, "ann", "app", QuotaKey.PRODUCE)
    if here:
        assert limit is not None
        assert (limit.rate, limit.sharers) == (min(here) + 1, ORDER[min(here)][1])
    else:
        assert limit is None


def test_a_client_without_an_id_has_the_default_one() -> None:
    quotas = {QuotaEntity(None, DEFAULT): {QuotaKey.FETCH: 5.0}, QuotaEntity("ann", DEFAULT): {QuotaKey.FETCH: 6.0}}
    found = [find_limit(quotas, user, "", QuotaKey.FETCH) for user in ("bob", "ann")]
    assert [limit and limit.rate for limit in found] == [5, 6]


@pytest.mark.parametrize("key", list(QuotaKey))
def test_a_limit_is_above_0(key: QuotaKey) -> None:
    assert check_quota(str(key), 7.0) is key
    for value in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(KorvetError, match="above 0") as caught:
            check_quota(str(key), value)
        assert caught.value.error is Errors.INVALID_REQUEST


def test_bytes_are_whole_numbers_and_others_need_not_be() -> None:
    for key in (QuotaKey.PRODUCE, QuotaKey.FETCH):
        with pytest.raises(KorvetError, match="Long"):
            check_quota(key, 1.5)
    assert check_quota("request_percentage", 0.5) is QuotaKey.REQUEST
    assert check_quota("controller_mutation_rate", 0.5) is QuotaKey.MUTATION


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(KorvetError, match="Invalid configuration key connection_creation_rate"):
        check_quota("connection_creation_rate", 1.0)


def test_an_entity_is_named_for_people() -> None:
    assert str(QuotaEntity("ann", DEFAULT)) == "user=ann, client-id=<default>"
    assert str(QuotaEntity(None, "app")) == "client-id=app"
