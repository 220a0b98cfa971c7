"""The driver of confluent-kafka: librdkafka in Python's clothes."""

from compat.clients.confluent.commands import Client
from compat.clients.confluent.member import describe_error, run
from compat.clients.lines import drive

drive(Client, run, describe_error)
