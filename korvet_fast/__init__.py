"""Korvet Fast: a broker for Kafka clients, installed with pip. See ARCHITECTURE.md for the map."""

from importlib.metadata import version

__version__ = version("korvet-fast")
