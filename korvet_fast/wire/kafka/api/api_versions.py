"""ApiVersions (key 18), versions 0-4: the APIs and versions of the table of routes, encoded once for each version.

0 the ranges; 1 throttle time; 2 nothing new; 3 flexible, names the client's software (not used); 4 nothing new here.
The response header stays version 0 for ever, and an unknown version is answered with a version 0 body and
UNSUPPORTED_VERSION (`Session` sees to that). Features: see features.py.
"""

from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.kafka.api.features import FEATURES
from korvet_fast.wire.kafka.session import Session, Values, list_api_versions
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS

_CORRELATION_AT, _CORRELATION_END = 4, 8  # the correlation id in a response, its length prefix included


async def api_versions(session: Session, request: Values, version: int) -> Reply:
    kept = session.service.versions
    reply = kept.get(version)
    if reply is None:
        reply = kept[version] = b"".join(
            API_VERSIONS.response.frame(list_api_versions(session.service.routes) | FEATURES, version)
        )
    correlation_id = request["correlation_id"].to_bytes(4, "big", signed=True)
    return [reply[:_CORRELATION_AT] + correlation_id + reply[_CORRELATION_END:]]
