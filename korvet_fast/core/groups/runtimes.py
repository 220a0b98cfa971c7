"""The groups that this broker has loaded."""

from collections.abc import Callable, Iterator, Sequence

from korvet_fast.core.groups.classic.group import ClassicGroup
from korvet_fast.core.groups.collaborators import GroupCollaborators
from korvet_fast.core.groups.committed_offsets import CommittedOffsets
from korvet_fast.core.groups.config import GroupConfig
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.documents import AnyGroup, parse_key, partition_for, unpack_group
from korvet_fast.core.groups.ownership import PartitionOwnership
from korvet_fast.core.groups.runtime import GroupRuntime
from korvet_fast.core.groups.store import CoordinatorFenced, GroupDocuments, GroupStore, error_of
from korvet_fast.core.groups.text.group import TextGroup
from korvet_fast.errors import Errors, StoreError


class GroupRuntimes:
    """The groups in memory, by group id."""

    def __init__(
        self,
        given: GroupCollaborators,
        config: GroupConfig,
        documents: GroupDocuments,
        ownerships: Sequence[PartitionOwnership],
        reload: Callable[[GroupRuntime], None],
    ) -> None:
        """`ownerships`: by coordinator partition. `reload`: loads a group again that was dropped."""
        self._given = given
        self._config = config
        self._documents = documents
        self._ownerships = ownerships
        self._reload = reload
        self.budget = config.budget
        self._by_id: dict[str, GroupRuntime] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[GroupRuntime]:
        return iter(list(self._by_id.values()))

    def get(self, group_id: str) -> GroupRuntime | None:
        return self._by_id.get(group_id)

    def refuse_new(self, group_id: str, *, joins: bool) -> Errors:
        """The error if this group cannot be created; `NONE` if it can. `joins`: a member that joins creates it."""
        return self.budget.refuse_new(group_id, len(self._by_id), joins=joins)

    def create(self, group_id: str) -> GroupRuntime:
        """Add a new group; nothing of it is stored yet."""
        return self.load(group_id, {})

    def load(self, group_id: str, documents: dict[str, bytes]) -> GroupRuntime:
        """Add a group from its documents in the registry, by key."""
        group: AnyGroup = ClassicGroup(self._config)
        since = self._given.clock.wall()
        packed = {}
        for key, document in documents.items():
            _, partition = parse_key(key)
            if partition is None:
                group, since = unpack_group(document, self._config)
            else:
                packed[partition] = document
        if isinstance(group, ConsumerGroup) and self._given.generation.number:
            group.bump_epoch()
        elif isinstance(group, TextGroup) and self._given.generation.number:
            group.bump_generation()
        group.resume(self._given.clock.monotonic())
        store = self.open_store(group_id, documents)
        offsets = CommittedOffsets(self._given, group_id, store, packed)
        runtime = GroupRuntime(self._given, group_id, group, since, offsets, store, self)
        self._by_id[group_id] = runtime
        return runtime

    def open_store(self, group_id: str, known: dict[str, bytes]) -> GroupStore:
        """The writer of a group's keys. `known`: their values in the store."""
        return self._documents.open_store(group_id, known, self._ownerships[partition_for(group_id)].comparison)

    def unload(self, partitions: set[int]) -> list[GroupRuntime]:
        """Drop the groups of these partitions, and return them: another broker coordinates them."""
        dropped = [runtime for runtime in self if partition_for(runtime.id) in partitions]
        for runtime in dropped:
            del self._by_id[runtime.id]
            runtime.end(Errors.NOT_COORDINATOR)
        return dropped

    def forget(self, runtime: GroupRuntime) -> None:
        """Drop a group that was deleted, or that has nothing to keep."""
        if self._by_id.get(runtime.id) is runtime:
            del self._by_id[runtime.id]
            runtime.end(Errors.COORDINATOR_NOT_AVAILABLE)

    def fail(self, runtime: GroupRuntime, failure: CoordinatorFenced | StoreError) -> None:
        """Load a group again: its memory may differ from its documents."""
        if self._by_id.get(runtime.id) is not runtime:
            return
        self._given.log.warn("group loaded again", f"group {runtime.id} is loaded again: {failure}")
        del self._by_id[runtime.id]
        self._reload(runtime)
        runtime.end(error_of(failure))
