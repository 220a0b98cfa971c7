"""The driver of aiokafka: the asyncio client."""

from compat.clients.aiokafka.commands import Client
from compat.clients.aiokafka.member import describe_error, run
from compat.clients.lines import drive

drive(Client, run, describe_error)
