"""The version of what keys in Redis mean: a broker leaves what a newer one has written alone.

It is a value of the registry, `korvet:@registry:schema`. Servers from before there was one have the first.
"""

from korvet_fast.errors import StoreError
from korvet_fast.store.redis.registry import Registry

KEY = "schema/version"
SCHEMA = 1  # one more with each change that a broker of before would misread


async def read_schema(registry: Registry) -> int:
    """The version that was written last; 0 if there is none. Raises `StoreError`: it cannot be read, or is newer."""
    return _understand(await registry.load(KEY))


async def claim_schema(registry: Registry) -> None:
    """Say, before anything else is written, that keys are of our version; those of an older one are from now on.

    Raises `StoreError` as `read_schema`, and then has written nothing.
    """
    while _understand(found := await registry.load(KEY)) < SCHEMA:
        if await registry.save(KEY, b"%d" % SCHEMA, found):
            return


def _understand(found: bytes | None) -> int:
    if found is None:
        return 0
    if not found.isdigit():
        raise StoreError(f"{KEY} in Redis is {found!r}, which is no version: did another program write it?")
    if int(found) > SCHEMA:
        raise StoreError(
            f"a newer version of this program has written to this Redis (its schema is {int(found)}, and {SCHEMA} is "
            "the newest known here): use that one, or another namespace (?namespace=)"
        )
    return int(found)
