"""The work of `send` for one message: the message joins the open run of its partition, or becomes a run of its own."""

from time import time_ns
from typing import TypeVar

from korvet_fast._native import MessageCells
from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.dispatcher import Dispatcher
from korvet_fast.client.producer.message import BATCH_HEADER, DeliveryFailed, Message, encoded_size, headers_size
from korvet_fast.client.producer.message_run import MessageRun, RunOwner

Run = TypeVar("Run", bound=MessageRun)


class MessageSender:
    """`owner`: of the runs that it makes."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        config: ProducerConfig,
        owner: RunOwner,
    ) -> None:
        self._dispatcher = dispatcher
        self._config = config
        self._owner = owner

    def begin(self, topic: str, value: bytes, key: bytes | None, partition: int, now: float) -> MessageRun | None:
        """The run that a message begins in the short way, with the present as its time. None: it goes by `send`."""
        run = MessageRun(topic, MessageCells(value, key, (), 0, None), partition, self._owner)
        fits = run.size + BATCH_HEADER <= self._config.message_bytes
        return run if fits and self._dispatcher.begin(run, now) else None

    def send(self, message: Message, now: float, wait: bool) -> tuple[MessageRun, int]:
        """The run that the message is in now, and its index there.

        Raises `DeliveryFailed` as `Dispatcher.enqueue`, and for a message that is too large.
        """
        topic = self._dispatcher.topics.get(message.topic)
        open_run = topic.open_run(message.key, message.partition) if topic is not None else None
        joined = self._join(open_run, message) if open_run is not None else None
        if joined is not None:
            return joined
        run = self.make(MessageRun, message)
        self.check_size(run)
        if message.partition is not None:
            if self._dispatcher.begin(run, now):
                return run, 0
            run.shut()
        if message.key is not None and run.partition < 0:
            if self._dispatcher.collect(run, now):
                return run, 0
            joined = self._join(self._dispatcher.topic(run.topic).placed_run(message.key), message)
            if joined is not None:
                return joined
        self._dispatcher.enqueue(run, now, wait)
        self._dispatcher.runs.open(run, message.partition is None)
        return run, 0

    def _join(self, run: MessageRun | None, message: Message) -> tuple[MessageRun, int] | None:
        """Add a message to an open run, if there is room in it."""
        if run is None:
            return None
        cells = message.value, message.key, message.headers, self._time_of(message)
        index = run.add(*cells)
        if index < 0:
            index = self._dispatcher.runs.join(run, *cells)
        return (run, index) if index > 0 else None

    def make(self, kind: type[Run], message: Message) -> Run:
        """A run of the one message."""
        topic, value, key, headers, partition, _, _ = message
        index = -1 if partition is None else partition
        cells = MessageCells(value, key, headers, headers_size(headers) if headers else 0, self._time_of(message))
        return kind(topic, cells, index, self._owner)

    def check_size(self, run: MessageRun) -> None:
        """Raise `DeliveryFailed` if a batch of a run's one message is above `max.request.size`."""
        most = self._config.message_bytes
        if run.size + BATCH_HEADER > most:  # the exact size matters only where the upper limit is above
            size = encoded_size(run.row_values()[0], run.first_key(), run.rows_of_headers()[0])
            if size > most:
                raise DeliveryFailed(f"a message of {size:,} bytes is above max.request.size={most:,}; raise it")

    def _time_of(self, message: Message) -> int:
        """The time of a message in ms since 1970: its own, or the present; -1 where only the broker sets one."""
        if message.timestamp is not None:
            return message.timestamp
        return time_ns() // 1_000_000 if self._config.dialect.has_times else -1
