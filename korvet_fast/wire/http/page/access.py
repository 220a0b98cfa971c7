"""The rights that the page needs: those of the requests by which Kafka's clients do the same (wire/kafka/access.py)."""

from typing import Final, NamedTuple

from korvet_fast.core.acls.binding import CLUSTER_NAME, Operation, ResourceType
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.http.exchange import Answer, Exchange
from korvet_fast.wire.http.page.show import show_line
from korvet_fast.wire.http.session import Handler, Session

_ERRORS: Final = {
    ResourceType.TOPIC: Errors.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: Errors.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: Errors.CLUSTER_AUTHORIZATION_FAILED,
}


class Need(NamedTuple):
    """An operation on a resource. `field`: the one of the request that names the resource; "" is the cluster."""

    operation: Operation
    resource: ResourceType
    field: str = ""


def needing(handler: Handler, *needs: Need, changes: bool = False) -> Handler:
    """The handler, for who has these rights. `changes`: it takes a form, and the audit log has who sent it."""

    async def answer(session: Session, exchange: Exchange) -> Answer:
        fields = exchange.form if changes else exchange.query
        for operation, resource, field in needs:
            name = fields.get(field, "") if field else CLUSTER_NAME
            require(session, exchange, Need(operation, resource), name, always=changes)
        return await handler(session, exchange)

    return answer if needs else handler


def require(
    session: Session, exchange: Exchange, need: Need, name: str, *, by_cluster: bool = False, always: bool = False
) -> None:
    """Raises `KorvetError` with the error of the type of resource, and a sentence. See `ClientSession.authorize`."""
    operation, resource, _ = need
    if session.authorize(exchange.api, operation, resource, name, by_cluster=by_cluster, always=always):
        return
    kind, verb = resource.name.lower(), operation.name.lower().replace("_", "-")
    what = "the cluster" if resource is ResourceType.CLUSTER else f"the {kind} {show_line(name)!r}"
    raise KorvetError(_ERRORS[resource], f"no ACL lets {show_line(session.principal)} {verb} {what}")


def sees(session: Session, operation: Operation, resource: ResourceType, name: str = CLUSTER_NAME) -> bool:
    """Whether a list has this, or a page this part. The audit log is not told, as it is not of Kafka's lists."""
    permissions = session.find_permissions()
    return permissions is None or permissions.allows(operation, resource, name)
