"""Chooses quotas by whom they are for (KIP-546)."""

from typing import Final, NamedTuple

from korvet_fast.core.quotas.entity import QuotaEntity

ANY: Final = object()  # every name, the default too


class EntityFilter(NamedTuple):
    """Each of the two: a name, DEFAULT, `ANY`; None: it does not matter. `strict`: then an entity may not have it."""

    user: object = None
    client_id: object = None
    strict: bool = False

    def matches(self, entity: QuotaEntity) -> bool:
        """Whether a quota of this entity is chosen."""
        return self._matches(self.user, entity.user) and self._matches(self.client_id, entity.client_id)

    def _matches(self, wanted: object, name: str | None) -> bool:
        if wanted is None:
            return name is None or not self.strict
        return name is not None and wanted in (ANY, name)
