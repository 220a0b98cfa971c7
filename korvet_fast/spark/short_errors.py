"""Errors of ours without the traceback that Spark prints before them: their sentence says what to do."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.errors import SettingError


@contextmanager
def short_errors() -> Iterator[None]:
    """Where Spark calls the source: a `SettingError` or `ClientError` of the block reaches the user in one line.

    In a worker process of Spark only: it ends with the error, so that no other traceback is cut off.
    """
    try:
        yield
    except (SettingError, ClientError):
        spec = sys.modules["__main__"].__spec__
        if spec is not None and spec.name.startswith("pyspark."):
            sys.tracebacklimit = 0
        raise
