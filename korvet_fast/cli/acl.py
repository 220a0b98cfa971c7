"""`korvet-fast acl`: who may do what: add, list and remove."""

from collections.abc import Callable
from functools import wraps
from itertools import product
from typing import Any, Final, NamedTuple, TypeVar

import click

from korvet_fast.cli.sentence import Commands
from korvet_fast.cli.session import Bootstrap, bootstrap_option, count, run
from korvet_fast.cli.table import draw_table, json_option, print_json
from korvet_fast.client.acls import create_acls, delete_acls, describe_acls
from korvet_fast.client.cluster import Cluster
from korvet_fast.core.acls.binding import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

F = TypeVar("F", bound=Callable[..., Any])

_OPERATIONS: Final = {one.name.lower().replace("_", "-"): one for one in Operation if one is not Operation.ANY}
_TYPES: Final = (
    (ResourceType.TOPIC, "topics"),
    (ResourceType.GROUP, "groups"),
    (ResourceType.TRANSACTIONAL_ID, "transactional_ids"),
)


class AclListing(NamedTuple):
    """An ACL. `pattern`: `literal`, so that it holds for this name (`*`: for every one), or `prefixed`."""

    principal: str
    permission: str
    operation: str
    resource: str
    name: str
    pattern: str
    host: str


class Chosen(NamedTuple):
    """What the options of a command name. `resources`: types, names and patterns; `who`: permissions and principals."""

    who: list[tuple[Permission, str]]
    operations: list[Operation]
    resources: list[tuple[ResourceType, str, PatternType]]
    host: str | None


@click.group(cls=Commands)
def command() -> None:
    """Add, list and remove ACLs, which say who may do what. The brokers need authorizer=acl.

    \b
    Examples:
      korvet-fast acl add --allow User:ann --operation read --topic 'orders-*' --group billing
      korvet-fast acl list --topic orders-eu
      korvet-fast acl remove --allow User:ann --topic 'orders-*'
    """


def _acl_options(function: F) -> F:
    """Add the options that name ACLs to a command, which gets them as one `Chosen`."""

    @wraps(function)
    def command(
        allow: tuple[str, ...],
        deny: tuple[str, ...],
        operations: tuple[str, ...],
        cluster: bool,
        host: str | None,
        **given: Any,
    ) -> Any:
        who = [(Permission.ALLOW, name) for name in allow] + [(Permission.DENY, name) for name in deny]
        resources = [(kind, *_read_name(name)) for kind, option in _TYPES for name in given.pop(option)]
        if cluster:
            resources.append((ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
        chosen = Chosen(who, [_OPERATIONS[one] for one in operations], resources, host)
        return function(chosen=chosen, **given)

    for option in reversed(
        (
            click.option("--allow", multiple=True, metavar="PRINCIPAL", help="Whom it allows: User:ann, or User:*."),
            click.option("--deny", multiple=True, metavar="PRINCIPAL", help="Whom it denies; that wins."),
            click.option(
                "--operation",
                "operations",
                multiple=True,
                type=click.Choice(list(_OPERATIONS), case_sensitive=False),
                help="What may be done, or may not.",
            ),
            click.option("--topic", "topics", multiple=True, metavar="NAME", help="A topic; NAME* is a prefix."),
            click.option("--group", "groups", multiple=True, metavar="NAME", help="A group; NAME* is a prefix."),
            click.option("--transactional-id", "transactional_ids", multiple=True, metavar="NAME", help="NAME* too."),
            click.option("--cluster", is_flag=True, help="The cluster: brokers, their settings, these ACLs."),
            click.option("--host", metavar="ADDRESS", help="Only from this address."),
        )
    ):
        command = option(command)
    return command  # type: ignore[return-value]


def _read_name(text: str) -> tuple[str, PatternType]:
    """`orders-*` is a prefix, `*` alone every name, and everything else a name."""
    if text.endswith(WILDCARD) and text != WILDCARD:
        return text.removesuffix(WILDCARD), PatternType.PREFIXED
    return text, PatternType.LITERAL


@command.command()
@_acl_options
@bootstrap_option
def add(chosen: Chosen, bootstrap: Bootstrap) -> None:
    """Add ACLs: one for each principal, operation and resource that is named.

    read, write, delete and alter imply describe. What no ACL allows is denied, but to super.users.

    \b
    Examples:
      korvet-fast acl add --allow User:ann --operation read --topic 'orders-*' --group billing
      korvet-fast acl add --allow User:CN=shop --operation write --operation create --topic orders
      korvet-fast acl add --deny 'User:*' --operation delete --topic orders --host 10.0.0.7
    """
    if not (chosen.who and chosen.operations and chosen.resources):
        raise click.UsageError(
            "say to whom (--allow, --deny), what (--operation) and where (--topic, --group, --cluster, …)"
        )
    bindings = [
        AclBinding(*resource, principal, chosen.host or WILDCARD, operation, permission)
        for (permission, principal), operation, resource in product(chosen.who, chosen.operations, chosen.resources)
    ]

    async def work(cluster: Cluster) -> None:
        await create_acls(cluster, bindings)

    run(bootstrap, work)
    click.echo(f"added {count(len(bindings), 'ACL')}")


@command.command("list")
@_acl_options
@json_option
@bootstrap_option
def list_command(chosen: Chosen, as_json: bool, bootstrap: Bootstrap) -> None:
    """List ACLs. --topic NAME lists all that apply to the topic, prefixes and * too; --topic 'NAME*' those of a prefix.

    \b
    Examples:
      korvet-fast acl list
      korvet-fast acl list --topic orders-eu --json
    """
    filters = _make_filters(chosen, PatternType.MATCH)

    async def work(cluster: Cluster) -> list[AclBinding]:
        return sorted({binding for one in filters for binding in await describe_acls(cluster, one)})

    rows = [
        AclListing(
            one.principal,
            one.permission.name.lower(),
            one.operation.name.lower().replace("_", "-"),
            one.resource.name.lower().replace("_", "-"),
            one.name,
            one.pattern.name.lower(),
            one.host,
        )
        for one in run(bootstrap, work)
    ]
    if as_json:
        print_json([row._asdict() for row in rows])
    else:
        draw_table(AclListing._fields, rows)


@command.command()
@click.option("--all", "every", is_flag=True, help="All ACLs, damaged ones too, if nothing else is named.")
@_acl_options
@bootstrap_option
def remove(chosen: Chosen, every: bool, bootstrap: Bootstrap) -> None:
    """Remove the ACLs that have all of what is named. What is left out may be anything.

    \b
    Examples:
      korvet-fast acl remove --allow User:ann --operation read --topic 'orders-*'
      korvet-fast acl remove --deny 'User:*'
    """
    named = bool(chosen.who or chosen.operations or chosen.resources or chosen.host)
    if named == every:
        raise click.UsageError("say which ACLs: options as of `acl add`, or --all alone")
    filters = _make_filters(chosen, PatternType.LITERAL)

    async def work(cluster: Cluster) -> int:
        return sum([await delete_acls(cluster, one) for one in filters])

    click.echo(f"removed {count(run(bootstrap, work), 'ACL')}")


def _make_filters(chosen: Chosen, literal: PatternType) -> list[AclFilter]:
    """A filter for each combination of what is named. `literal`: how a name that is no prefix chooses."""
    filters = [AclFilter(host=chosen.host)]
    if chosen.resources:
        filters = [
            one._replace(resource=kind, name=name, pattern=literal if pattern is PatternType.LITERAL else pattern)
            for one, (kind, name, pattern) in product(filters, chosen.resources)
        ]
    if chosen.who:
        filters = [
            one._replace(permission=permission, principal=principal)
            for one, (permission, principal) in product(filters, chosen.who)
        ]
    if chosen.operations:
        filters = [one._replace(operation=operation) for one, operation in product(filters, chosen.operations)]
    return filters
