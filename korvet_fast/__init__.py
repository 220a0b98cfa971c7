"""Korvet Fast: a broker for Kafka clients, installed with pip. See ARCHITECTURE.md for the map."""

__version__: str


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version  # slow to import, and seldom asked for

    try:
        return version("korvet-fast")
    except PackageNotFoundError:  # the package alone, as somebody copied it to Spark's executors
        return "unknown"
