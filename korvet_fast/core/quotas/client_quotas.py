"""The quotas in force, and how much the clients that have some took lately."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

from korvet_fast.core.quotas.entity import DEFAULT, LONGEST_NAME, QuotaEntity, QuotaKey, Quotas, find_limit
from korvet_fast.core.quotas.token_bucket import TokenBucket

MOST_CLIENTS: Final = 5_000  # whose use is known; those that asked for nothing for longest are forgotten first

ClientBuckets: TypeAlias = Mapping[QuotaKey, TokenBucket]  # of one client, by what has a limit


class ClientQuotas:
    """`is_set`: anybody has a quota; nothing else need be asked if not. `throttled`: requests, by what was exceeded.

    `now`: monotonic seconds. Clients whose quota counts them together have the same bucket.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.is_set = False
        self.entities: dict[QuotaEntity, Quotas] = {}
        self.throttled: Counter[QuotaKey] = Counter()
        self._clients: OrderedDict[tuple[str, str], ClientBuckets] = OrderedDict()
        self._former = self._clients  # keeps the buckets of clients that asked for nothing since the last change
        self._buckets: WeakValueDictionary[tuple[QuotaKey, QuotaEntity], TokenBucket] = WeakValueDictionary()

    def replace(self, entities: Mapping[QuotaEntity, Quotas]) -> None:
        """These quotas hold from now on, and no others."""
        self.entities = dict(entities)
        self._note_change()

    def alter(self, entity: QuotaEntity, quotas: Quotas) -> None:
        """An entity has these quotas from now on, or none."""
        if quotas:
            self.entities[entity] = quotas
        else:
            self.entities.pop(entity, None)
        self._note_change()

    def _note_change(self) -> None:
        self.is_set = bool(self.entities)
        if self._clients:
            self._former, self._clients = self._clients, OrderedDict()

    def find(self, principal: str, client_id: str | None) -> ClientBuckets:
        """The buckets of a client. `principal`: `User:ann`. Names that are too long for a quota are nobody's."""
        if client_id is None or len(client_id) > LONGEST_NAME:
            client_id = DEFAULT
        client = principal if len(principal) <= LONGEST_NAME else DEFAULT, client_id
        found = self._clients.get(client)
        if found is None:
            found = self._clients[client] = self._resolve(client[0].removeprefix("User:"), client_id)
            if len(self._clients) > MOST_CLIENTS:
                self._clients.popitem(last=False)
        else:
            self._clients.move_to_end(client)
        return found

    def _resolve(self, user: str, client_id: str) -> ClientBuckets:
        found = ((key, self._find_bucket(user, client_id, key)) for key in QuotaKey)
        return {key: bucket for key, bucket in found if bucket is not None}

    def _find_bucket(self, user: str, client_id: str, key: QuotaKey) -> TokenBucket | None:
        limit = find_limit(self.entities, user, client_id, key)
        if limit is None:
            return None
        bucket = self._buckets.get((key, limit.sharers))
        if bucket is None:
            bucket = self._buckets[key, limit.sharers] = TokenBucket(limit.rate, self.now())
        elif bucket.rate != limit.rate:
            bucket.rate = limit.rate
        return bucket
