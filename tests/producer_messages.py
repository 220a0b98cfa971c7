"""Messages sent as `AsyncProducer.send` sends them: those of one turn of the loop for one partition form a run."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from korvet_fast.client.producer.delivery import Delivery, wake
from korvet_fast.client.producer.hashing import murmur2_hash
from korvet_fast.client.producer.message import Cancelled, DeliveryFailed, Message, Outcome
from korvet_fast.client.producer.message_run import MessageRun
from korvet_fast.client.producer.message_sender import MessageSender
from korvet_fast.client.producer.pipeline import Pipeline


class SentMessage:
    """One message, how its run says that it ended, and somebody who waits for it. `values`: its one value."""

    def __init__(self, message: Message, delivery: Delivery) -> None:
        assert message.value is not None
        self.message = message
        self.values = (message.value,)
        self.topic = message.topic
        self.partition = -1
        self.offset = -1
        self.deadline = 0.0
        self.outcome: Outcome | None = None
        self.error: DeliveryFailed | None = None
        self.delivery = delivery
        self.woken = 0

    def done(self) -> bool:
        return self.woken > 0

    def set_result(self, result: None, /) -> None:
        self.woken += 1

    def end(self, run: MessageRun, position: int) -> None:
        assert run.outcome is not None
        self.partition, self.deadline = run.partition, run.deadline
        self.outcome, self.error = run.outcome, run.error
        self.offset = run.offset + position if run.offset >= 0 else -1

    def check(self, partitions: int | None) -> None:
        """The `Delivery` says what the run said, and who waited was told once. `partitions`: where keys choose them."""
        assert (self.delivery.outcome, self.woken) == (self.outcome, 1)
        if self.outcome is Outcome.DELIVERED:
            found = self.delivery.result()
            assert (found.topic, found.partition, found.offset) == (self.topic, self.partition, self.offset)
            assert found.timestamp == self.message.timestamp, "times stay with their messages"
            if partitions and self.message.partition is None and self.message.key is not None:
                assert self.partition == murmur2_hash(self.message.key, partitions)  # P12
        else:
            assert type(self.delivery.exception()) is type(self.error)


class SentMessages:
    """All that was sent so, by value."""

    def __init__(self, pipeline: Pipeline) -> None:
        owner = SimpleNamespace(enter=lambda: 0.0, withdraw=pipeline.dispatcher.withdraw_message)
        self._sender = MessageSender(pipeline.dispatcher, pipeline.config, owner)
        self._sent: dict[bytes, SentMessage] = {}

    def send(self, message: Message, now: float, wait: bool) -> SentMessage:
        """Raises as `AsyncProducer.send`."""
        run, index = self._sender.send(message, now, wait)
        sent = SentMessage(message, Delivery(run, index))
        run.waiters.setdefault(index, []).append(sent)
        self._sent[sent.values[0]] = sent
        return sent

    def end(self, run: MessageRun) -> list[SentMessage]:
        """A run has ended: its messages, in order."""
        ended = []
        for position, value in enumerate(run.row_values()):
            assert value is not None
            sent = self._sent[value]
            sent.end(run, position)
            ended.append(sent)
        run.forget()
        wake(run)
        return ended

    def check(self, partitions: int | None) -> None:
        for sent in self._sent.values():
            sent.check(partitions)


def withdraw(sent: SentMessage, pump: Callable[[], Any]) -> None:
    """Take a message back; if it was in no batch, it alone ends, as withdrawn."""
    taken = sent.delivery.cancel()
    pump()
    assert not taken or isinstance(sent.error, Cancelled)
