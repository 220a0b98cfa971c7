"""Brokers inside a program, for its tests: `running_broker`, `broker_in_thread`, and the fixtures of `plugin.py`.

pytest imports this package in every session, so importing it must be cheap: names are looked up when they are used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from korvet_fast.testing.brokers import broker_in_thread, running_broker

__all__ = ["broker_in_thread", "running_broker"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from korvet_fast.testing import brokers

    return getattr(brokers, name)
