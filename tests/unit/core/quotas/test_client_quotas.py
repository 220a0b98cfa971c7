"""What clients took: counted together where a quota says so, remembered over changes, and bounded."""

import gc

import pytest

from korvet_fast.core.quotas import client_quotas as module
from korvet_fast.core.quotas.client_quotas import ClientQuotas
from korvet_fast.core.quotas.entity import DEFAULT, LONGEST_NAME, QuotaEntity, QuotaKey

PRODUCE, FETCH = QuotaKey.PRODUCE, QuotaKey.FETCH


def make(**limits: float) -> ClientQuotas:
    """Quotas of bytes produced for these users."""
    quotas = ClientQuotas(lambda: 0.0)
    quotas.replace({QuotaEntity(user, None): {PRODUCE: rate} for user, rate in limits.items()})
    return quotas


def test_nothing_is_asked_where_nobody_has_a_quota() -> None:
    quotas = ClientQuotas(lambda: 0.0)
    assert not quotas.is_set
    quotas.alter(QuotaEntity("ann", None), {PRODUCE: 1.0})
    assert quotas.is_set
    quotas.alter(QuotaEntity("ann", None), {})
    assert not quotas.is_set


def test_all_clients_of_a_user_share_the_users_quota_and_others_have_none() -> None:
    quotas = make(ann=100)
    one, two = (quotas.find("User:ann", client)[PRODUCE] for client in ("a", "b"))
    assert one is two
    assert quotas.find("User:bob", "a") == {}


def test_each_client_id_has_its_own_of_a_default() -> None:
    quotas = ClientQuotas(lambda: 0.0)
    quotas.replace({QuotaEntity(DEFAULT, DEFAULT): {FETCH: 5.0}})
    found = [quotas.find(user, client)[FETCH] for user in ("User:a", "User:b") for client in ("x", "y", None)]
    assert len(set(map(id, found))) == 6


def test_a_change_of_somebody_elses_quota_forgets_nothing() -> None:
    quotas = make(ann=100)
    assert quotas.find("User:ann", None)[PRODUCE].take(2000, 0.0) == 10
    quotas.alter(QuotaEntity("bob", None), {PRODUCE: 5.0})
    assert quotas.find("User:ann", None)[PRODUCE].take(0, 0.0) == 10
    quotas.alter(QuotaEntity("ann", None), {PRODUCE: 1000.0})
    assert quotas.find("User:ann", None)[PRODUCE].take(0, 0.0) == 1


def test_a_flood_of_client_ids_is_forgotten_but_not_those_who_go_on_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CLIENTS", 10)
    quotas = ClientQuotas(lambda: 0.0)
    quotas.replace({QuotaEntity(None, DEFAULT): {PRODUCE: 100.0}})
    assert quotas.find("User:ann", "busy")[PRODUCE].take(2000, 0.0) == 10
    for number in range(1000):
        quotas.find("User:ann", f"flood-{number}")
        quotas.find("User:ann", "busy")
    assert quotas.find("User:ann", "busy")[PRODUCE].take(0, 0.0) == 10
    gc.collect()
    assert len(quotas._buckets) <= 10
    assert len(quotas._clients) <= 10


def test_a_name_too_long_for_a_quota_is_not_kept() -> None:
    quotas = ClientQuotas(lambda: 0.0)
    quotas.replace({QuotaEntity(DEFAULT, DEFAULT): {PRODUCE: 100.0}})
    one = quotas.find(f"User:{'x' * LONGEST_NAME}", "y" * (LONGEST_NAME + 1))
    two = quotas.find(f"User:{'z' * LONGEST_NAME}", None)
    assert one[PRODUCE] is two[PRODUCE]
    assert all(len(user) + len(client) <= 2 * LONGEST_NAME for user, client in quotas._clients)
