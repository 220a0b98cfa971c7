"""The one table of the paths served."""

from collections.abc import Mapping
from typing import Final

from korvet_fast.wire.http.health import live, ready
from korvet_fast.wire.http.metrics import scrape
from korvet_fast.wire.http.session import Route

ROUTES: Final[Mapping[str, Route]] = {
    "/metrics": Route(scrape),
    "/livez": Route(live, public=True),
    "/readyz": Route(ready, public=True),
}
