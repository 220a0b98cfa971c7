"""ApiVersions (key 18), versions 0-4: what may be asked, straight from the table of routes.

0 the ranges; 1 throttle time; 2 nothing new; 3 flexible, names the client's software (not used); 4 nothing new here.
The response header stays version 0 for ever, and an unknown version is answered with a version 0 body and
UNSUPPORTED_VERSION (`Session` sees to that). Missing on purpose: supported and finalized features, because a Java
producer changes its transaction protocol as soon as it sees one it knows.
"""

from korvet_fast.wire.kafka.session import Session, Values


async def api_versions(session: Session, request: Values, version: int) -> Values:
    return {
        "api_keys": [
            {
                "api_key": key,
                "min_version": route.lowest if route.advertised is None else route.advertised,
                "max_version": route.highest,
            }
            for key, route in sorted(session.service.routes.items())
        ]
    }
