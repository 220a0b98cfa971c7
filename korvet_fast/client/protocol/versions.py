"""ApiVersions: which requests a broker serves, and in which version a request is sent (KIP-511)."""

from collections.abc import Mapping
from typing import Any

import korvet_fast
from korvet_fast.client.protocol.errors import ClientError, UnsupportedVersion
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.errors import UNSUPPORTED_VERSION
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS
from korvet_fast.wire.kafka.shapes.message import Message

CLIENT_ID = "korvet-fast"


class BrokerVersions:
    """The versions that one broker serves, from its ApiVersions answer. `ClientError` if the answer is an error."""

    def __init__(self, endpoint: Address, answer: Mapping[str, Any]) -> None:
        if answer["error_code"]:
            raise ClientError(f"{endpoint} refused to tell its API versions (error {answer['error_code']})")
        self._endpoint = endpoint
        self._served: dict[int, tuple[int, int]] = {
            row["api_key"]: (row["min_version"], row["max_version"]) for row in answer["api_keys"]
        }

    def choose(self, message: Message) -> int:
        """The newest version that both sides know. Raises `UnsupportedVersion` if there is none."""
        lowest, highest = self._served.get(message.key, (0, -1))
        version = min(message.highest, highest)
        if version < max(message.lowest, lowest):
            offered = f"only versions {lowest} to {highest}" if highest >= 0 else "none"
            raise UnsupportedVersion(
                f"the broker at {self._endpoint} speaks {offered} of {message.name}; "
                f"this client needs one of {message.lowest} to {message.highest}"
            )
        return version

    def include(self, message: Message) -> bool:
        """Whether the broker serves this API at all."""
        return message.key in self._served


def api_versions_request() -> dict[str, str]:
    """The values of an ApiVersions request: name and version of this client's software."""
    return {"client_software_name": CLIENT_ID, "client_software_version": korvet_fast.__version__}


def response_version(message: Message, version: int, frame: bytearray) -> int:
    """The version in which a frame is written: that of its request, with one exception.

    A broker that does not know the version of an ApiVersions request answers in version 0.
    """
    if message.key == API_VERSIONS.key and int.from_bytes(frame[4:6], "big") == UNSUPPORTED_VERSION:
        return 0
    return version
