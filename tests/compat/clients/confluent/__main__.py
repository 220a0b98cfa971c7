"""The driver of confluent-kafka: librdkafka in Python's clothes."""

from compat.clients.confluent.commands import open_client
from compat.clients.confluent.member import describe_error, run
from compat.clients.lines import drive

drive(open_client, run, describe_error)
