"""Whom a quota is for, what it limits, and which of several holds: Kafka's eight levels (KIP-55)."""

import math
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from korvet_fast.errors import Errors, KorvetError

DEFAULT: Final = ""  # the name that stands for everybody without a quota of their own; no entity may be called so
LONGEST_NAME: Final = 1024  # characters of a user's name or a client id that can have a quota of their own


class QuotaKey(StrEnum):
    """What a quota limits, by the names that Kafka's tools use."""

    PRODUCE = "producer_byte_rate"  # bytes of Produce requests a second
    FETCH = "consumer_byte_rate"  # bytes of records a second
    REQUEST = "request_percentage"  # share of one thread's time, in percent: the event loop's
    MUTATION = "controller_mutation_rate"  # partitions created and deleted a second


_WHOLE: Final = frozenset({QuotaKey.PRODUCE, QuotaKey.FETCH})  # whole numbers, as Kafka demands

Quotas = Mapping[QuotaKey, float]


class QuotaEntity(NamedTuple):
    """A user, a client id, or both together; None: the quota does not look at it. A name may be `DEFAULT`."""

    user: str | None
    client_id: str | None

    def __str__(self) -> str:
        named = (("user", self.user), ("client-id", self.client_id))
        return ", ".join(f"{kind}={name or '<default>'}" for kind, name in named if name is not None)


# The levels, the one that holds first: whether user and client id are those of the client, DEFAULT, or not looked at.
_OWN: Final = object()
_LEVELS: Final = (
    (_OWN, _OWN),
    (_OWN, DEFAULT),
    (_OWN, None),
    (DEFAULT, _OWN),
    (DEFAULT, DEFAULT),
    (DEFAULT, None),
    (None, _OWN),
    (None, DEFAULT),
)


class Limit(NamedTuple):
    """A limit that holds for a client; `sharers`: all clients that it counts together have the same."""

    rate: float
    sharers: QuotaEntity


def find_limit(quotas: Mapping[QuotaEntity, Quotas], user: str, client_id: str, key: QuotaKey) -> Limit | None:
    """The limit of the first level that has one. A client without an id has the quotas of the default client id."""
    for level, sharers in _name_levels(user, client_id):
        rate = quotas.get(level, {}).get(key)
        if rate is not None:
            return Limit(rate, sharers)
    return None


def _name_levels(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, QuotaEntity]]:
    """Each level's entity for this client, and whom its limit counts together."""
    for of_user, of_client in _LEVELS:
        yield (
            QuotaEntity(_pick(of_user, user), _pick(of_client, client_id)),
            QuotaEntity(None if of_user is None else user, None if of_client is None else client_id),
        )


def _pick(level: object, own: str) -> str | None:
    if level is _OWN:
        return own
    return None if level is None else DEFAULT


def check_quota(name: str, value: float) -> QuotaKey:
    """The key of this name, for which the value is legal. Raises `KorvetError` INVALID_REQUEST."""
    try:
        key = QuotaKey(name)
    except ValueError:
        raise KorvetError(Errors.INVALID_REQUEST, f"Invalid configuration key {name}") from None
    if not (math.isfinite(value) and value > 0):
        raise KorvetError(Errors.INVALID_REQUEST, f"{key} must be above 0, and is {value}")
    if key in _WHOLE and value != round(value):
        raise KorvetError(Errors.INVALID_REQUEST, f"Configuration {key} must be a Long value, and is {value}")
    return key
