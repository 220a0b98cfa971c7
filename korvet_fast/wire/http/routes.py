"""The one table of the paths served."""

from collections.abc import Mapping
from typing import Final

from korvet_fast.core.acls.binding import Operation, ResourceType
from korvet_fast.wire.http.health import live, ready
from korvet_fast.wire.http.metrics import scrape
from korvet_fast.wire.http.page.access import Need, needing
from korvet_fast.wire.http.page.actions import (
    create_topic,
    delete_records,
    reset_offsets,
    show_create_topic,
    show_delete_records,
    show_reset,
    taking_forms,
)
from korvet_fast.wire.http.page.brokers import show_brokers, show_settings
from korvet_fast.wire.http.page.groups import show_group, show_groups
from korvet_fast.wire.http.page.records import show_records
from korvet_fast.wire.http.page.render import refusing
from korvet_fast.wire.http.page.static import serve_file
from korvet_fast.wire.http.page.topic import show_topic
from korvet_fast.wire.http.page.topics import show_topics
from korvet_fast.wire.http.session import Handler, Route

_TOPIC, _GROUP = ResourceType.TOPIC, ResourceType.GROUP
_MEMORY: Final = 1 << 20  # of a page with a hundred rows
_OF_RECORDS: Final = 4 << 20  # of fifty records, each with long texts in which everything is escaped
_CHALLENGE: Final = 'Basic realm="korvet-fast: the password is the token"'


def _page(handler: Handler, *needs: Need, change: "Handler | None" = None, memory: int = _MEMORY) -> Route:
    """A view of the page, for browsers. `needs`: the rights for it; `change`: what its form does, by the same rights.

    Without any, the view leaves out what the client has no right to, or shows nothing that needs one.
    """
    done = None if change is None else taking_forms(refusing(needing(change, *needs, changes=True)))
    return Route(refusing(needing(handler, *needs)), change=done, challenge=_CHALLENGE, memory=memory)


ROUTES: Final[Mapping[str, Route]] = {
    "/metrics": Route(scrape),
    "/livez": Route(live, public=True),
    "/readyz": Route(ready, public=True),
    "/": _page(show_topics),
    "/topic": _page(show_topic, Need(Operation.DESCRIBE, _TOPIC, "name")),
    "/records": _page(show_records, Need(Operation.READ, _TOPIC, "topic"), memory=_OF_RECORDS),
    "/groups": _page(show_groups),
    "/group": _page(show_group, Need(Operation.DESCRIBE, _GROUP, "id")),
    "/brokers": _page(show_brokers, Need(Operation.DESCRIBE, ResourceType.CLUSTER)),
    "/settings": _page(show_settings, Need(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)),
    "/create-topic": _page(show_create_topic, change=create_topic),  # which asks for the right itself
    "/delete-records": _page(show_delete_records, Need(Operation.DELETE, _TOPIC, "topic"), change=delete_records),
    "/reset-offsets": _page(
        show_reset, Need(Operation.READ, _GROUP, "id"), Need(Operation.READ, _TOPIC, "topic"), change=reset_offsets
    ),
    "/page.css": _page(serve_file("page.css")),
    "/page.js": _page(serve_file("page.js")),
}
