"""Python runs this when a worker of a local Spark starts: PySpark is imported from its directory, not from its archive.

Spark puts `pyspark/python/lib/pyspark.zip` first on the path of its workers. An archive keeps no compiled code, so each
worker would compile all it imports of PySpark, for a third of a second. The directory beside it has the same modules.
"""

import os
import sys

ARCHIVES = "/pyspark/python/lib/"

_directories = {os.path.realpath(entry) for entry in sys.path}
sys.path[:] = [
    entry
    for entry in sys.path
    if ARCHIVES not in entry or os.path.realpath(entry[: entry.index(ARCHIVES)]) not in _directories
]  # where only the archive can be imported, it stays

# This file hides another one of its name, which is run now.
sys.path[:] = [entry for entry in sys.path if entry != os.path.dirname(__file__)]  # noqa: PTH120 - pathlib is not imported yet
_this = sys.modules.pop(__name__)
try:
    __import__(__name__)
except ModuleNotFoundError as error:
    if error.name != __name__:  # it is there, and imports what is not
        raise
    sys.modules[__name__] = _this
