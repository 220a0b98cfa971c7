"""The ACLs of a cluster, as administrators see and change them."""

from collections.abc import Sequence

from korvet_fast.client.cluster import Cluster
from korvet_fast.client.protocol.errors import check_error_code
from korvet_fast.core.acls.binding import AclBinding, AclFilter, Operation, PatternType, Permission, ResourceType
from korvet_fast.wire.kafka.shapes.security import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS


async def create_acls(cluster: Cluster, bindings: Sequence[AclBinding]) -> None:
    """Add ACLs; those that are there already stay. Raises `ClientError`."""
    creations = [
        {
            "resource_type": one.resource,
            "resource_name": one.name,
            "resource_pattern_type": one.pattern,
            "principal": one.principal,
            "host": one.host,
            "operation": one.operation,
            "permission_type": one.permission,
        }
        for one in bindings
    ]
    answer = await (await cluster.controller()).request(CREATE_ACLS, {"creations": creations})
    for binding, row in zip(bindings, answer["results"], strict=True):
        check_error_code(f"the ACL {binding}", row["error_code"], row["error_message"])


async def describe_acls(cluster: Cluster, wanted: AclFilter) -> list[AclBinding]:
    """The ACLs that a filter chooses, sorted. Raises `ClientError`."""
    answer = await (await cluster.controller()).request(DESCRIBE_ACLS, _write(wanted))
    check_error_code("the ACLs", answer["error_code"], answer["error_message"])
    return sorted(
        AclBinding(
            ResourceType(row["resource_type"]),
            row["resource_name"],
            PatternType(row["pattern_type"]),
            one["principal"],
            one["host"],
            Operation(one["operation"]),
            Permission(one["permission_type"]),
        )
        for row in answer["resources"]
        for one in row["acls"]
    )


async def delete_acls(cluster: Cluster, wanted: AclFilter) -> int:
    """Remove the ACLs that a filter chooses; returns how many there were. Raises `ClientError`."""
    answer = await (await cluster.controller()).request(DELETE_ACLS, {"filters": [_write(wanted)]})
    (row,) = answer["filter_results"]
    check_error_code("the ACLs", row["error_code"], row["error_message"])
    for one in row["matching_acls"]:
        check_error_code("an ACL", one["error_code"], one["error_message"])
    return len(row["matching_acls"])


def _write(wanted: AclFilter) -> dict[str, object]:
    return {
        "resource_type_filter": wanted.resource,
        "resource_name_filter": wanted.name,
        "pattern_type_filter": wanted.pattern,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }
