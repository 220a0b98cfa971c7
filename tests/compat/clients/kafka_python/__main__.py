"""The driver of kafka-python: the pure Python client."""

from compat.clients.kafka_python.commands import Client
from compat.clients.kafka_python.member import describe_error, run
from compat.clients.lines import drive

drive(Client, run, describe_error)
