"""All attacks, by number."""

from abuse.attack import ATTACKS, Attack
from abuse.attacks import counts, crowds, engines, leftovers, records, slow
from abuse.fuzz import live

FILES = (counts, records, crowds, slow, engines, leftovers, live)  # importing them fills the table


def attacks_on(store: str) -> list[Attack]:
    """The attacks that make sense over "files", "redis" or "cluster", in the order of their numbers."""
    return sorted((each for each in ATTACKS.values() if store in each.stores), key=lambda each: _order(each.number))


def _order(number: str) -> tuple[int, int, str]:
    section, _, rest = number.partition(".")
    digits = rest.rstrip("abc")
    return int(section), int(digits), rest
