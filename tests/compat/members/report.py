"""What a member program tells its test: one JSON object a line. And what it was told to do."""

import json
import signal
import sys
from typing import Any, NamedTuple


class Options(NamedTuple):
    """`session`: ms. `instance`: its group.instance.id, "" if it is no static member. `strategy`: Kafka's name."""

    bootstrap: str
    topic: str
    group: str
    session: int = 6000
    instance: str = ""
    strategy: str = "range"


def options() -> Options:
    return Options(**json.loads(sys.argv[1]))


def tell(**what: Any) -> None:
    """`assigned`, `revoked`: partitions. `read`: partition, offset. `committed`: offset by partition."""
    print(json.dumps(what), flush=True)


class Running:
    """True until SIGTERM."""

    def __init__(self) -> None:
        self._stopped = False
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_: object) -> None:
        self._stopped = True

    def __bool__(self) -> bool:
        return not self._stopped
