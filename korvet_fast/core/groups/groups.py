"""The requests of administrators: ListGroups, DescribeGroups, DeleteGroups."""

from korvet_fast.core.groups.documents import AnyGroup
from korvet_fast.core.groups.partitions import CoordinatorPartitions
from korvet_fast.errors import NONE, Errors


class Groups:
    """The groups that this broker coordinates."""

    def __init__(self, partitions: CoordinatorPartitions) -> None:
        self._partitions = partitions
        self._runtimes = partitions.runtimes

    def list(self) -> tuple[Errors, list[tuple[str, AnyGroup]]]:
        """The groups, sorted by name; and an error if some are not loaded yet. Callers do not change the groups."""
        error = Errors.COORDINATOR_LOAD_IN_PROGRESS if self._partitions.is_loading else NONE
        return error, sorted(((runtime.id, runtime.group) for runtime in self._runtimes), key=lambda row: row[0])

    def describe(self, group_id: str) -> tuple[Errors, AnyGroup | None]:
        """The error, or the group. Callers do not change the group."""
        if error := self._partitions.refuse(group_id):
            return error, None
        runtime = self._runtimes.get(group_id)
        if runtime is None or runtime.group.is_dead:
            return Errors.GROUP_ID_NOT_FOUND, None
        return NONE, runtime.group

    async def delete(self, group_id: str) -> Errors:
        """Remove a group without members, and all its offsets; the error."""
        error, _ = self.describe(group_id)
        runtime = self._runtimes.get(group_id)
        return error if runtime is None or error else await runtime.delete()
