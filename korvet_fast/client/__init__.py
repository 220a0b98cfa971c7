"""A Kafka client: `protocol` without I/O, a small asyncio client for the command line, and the producer.

`from korvet_fast.client import AsyncProducer, Producer`; they are imported when they are first asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from korvet_fast.client.producer.async_producer import AsyncProducer
    from korvet_fast.client.producer.blocking_producer import Producer

__all__ = ["AsyncProducer", "Producer"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from korvet_fast.client import producer

    return getattr(producer, name)
