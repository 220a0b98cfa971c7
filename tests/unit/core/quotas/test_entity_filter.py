"""The choice of quotas by whom they are for (KIP-546)."""

import pytest

from korvet_fast.core.quotas.entity import DEFAULT, QuotaEntity
from korvet_fast.core.quotas.entity_filter import ANY, EntityFilter

EVERY = [QuotaEntity(user, client_id) for user in (None, DEFAULT, "ann") for client_id in (None, DEFAULT, "app")][
    1:
]  # not the one that is for nobody


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (EntityFilter(), EVERY),
        (EntityFilter(strict=True), []),
        (EntityFilter("ann"), [each for each in EVERY if each.user == "ann"]),
        (EntityFilter("ann", strict=True), [QuotaEntity("ann", None)]),
        (EntityFilter(DEFAULT, strict=True), [QuotaEntity(DEFAULT, None)]),
        (EntityFilter(ANY), [each for each in EVERY if each.user is not None]),
        (EntityFilter(ANY, strict=True), [QuotaEntity(DEFAULT, None), QuotaEntity("ann", None)]),
        (EntityFilter("ann", ANY), [QuotaEntity("ann", DEFAULT), QuotaEntity("ann", "app")]),
        (EntityFilter(None, "app", strict=True), [QuotaEntity(None, "app")]),
        (EntityFilter("ann", "app", strict=True), [QuotaEntity("ann", "app")]),
        (EntityFilter("bob"), []),
    ],
)
def test_a_filter_chooses(wanted: EntityFilter, chosen: list[QuotaEntity]) -> None:
    assert [each for each in EVERY if wanted.matches(each)] == chosen
