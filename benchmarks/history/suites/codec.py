"""Every native call, in time."""

from collections.abc import Callable

from benchmarks.check import REPEATS
from benchmarks.codec.calls import prepare
from korvet_fast import _native

CALLS = list(prepare(1))


class Codec:
    """`records` of 100 bytes, or as many frames, partitions, commands or replies."""

    params = (CALLS, list(REPEATS))
    param_names = ("call", "records")
    warmup_time = 0.05
    sample_time = 0.02
    repeat = (3, 10, 0.5)

    def setup(self, call: str, records: int) -> None:
        try:
            self.work: Callable[[], object] = prepare(records)[call](_native)
            self.work()
        except AttributeError as error:
            raise NotImplementedError(f"the commit does not have this call yet: {error}") from None  # asv goes on

    def time_call(self, call: str, records: int) -> None:
        self.work()
