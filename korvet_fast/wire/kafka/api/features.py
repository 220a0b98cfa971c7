"""The version of Kafka that tools are told: what is served here corresponds to most of that version.

Tools that ask for a version look at `metadata.version` (KIP-584, KIP-778) or, older ones, at the broker's setting
`inter.broker.protocol.version`. It is one level, finished and not to be changed. `transaction.version` is left out: a
Java producer changes its transaction protocol as soon as it sees one.
Source of the level: MetadataVersion.java.
"""

from typing import Any, Final

from korvet_fast.config import Described, Source
from korvet_fast.config_def import Kind, Setting

_LEVEL: Final = 25
_VERSION: Final = "4.0-IV3"  # its name

# The fields of an ApiVersions answer, version 3 and up.
FEATURES: Final[dict[str, Any]] = {
    "supported_features": [{"name": "metadata.version", "min_version": _LEVEL, "max_version": _LEVEL}],
    "finalized_features_epoch": 0,
    "finalized_features": [{"name": "metadata.version", "max_version_level": _LEVEL, "min_version_level": _LEVEL}],
}

_SETTING: Final = Setting(
    "inter.broker.protocol.version",
    Kind.STRING,
    _VERSION,
    "The version of Kafka that this broker is like, for tools that want to know one.",
)
INTER_BROKER_PROTOCOL_VERSION: Final = Described(
    _SETTING.name, _VERSION, Source.DEFAULT, _SETTING, ((_SETTING.name, _VERSION, Source.DEFAULT),)
)
