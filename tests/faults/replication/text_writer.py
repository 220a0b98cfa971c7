"""A producer in lines of text: it sends again until it is told OK, and asks the next broker where one is no use."""

import time
from collections.abc import Sequence
from itertools import count

from faults.redis.load import Load, LoadWriter
from history import Sent
from text_client import TextClient

_AGAIN = 0.02  # seconds after a refusal
_PATIENCE = 5.0  # seconds that a broker has to answer


class TextWriter(LoadWriter):
    """Sends `text:0`, `text:1`, … one after the other with acks=all, to the partitions in turn.

    What it was not told may be in the log twice, as this protocol knows no sequence numbers.
    """

    def __init__(self, load: Load, ports: Sequence[int]) -> None:
        super().__init__("text")
        self.refusals: list[str] = []
        self._load = load
        self._ports = ports
        self._keys = [_find_key(partition, load.partitions) for partition in range(load.partitions)]
        self._chosen = [0] * load.partitions  # which broker is asked for a partition
        self._clients: dict[int, TextClient] = {}

    def run(self) -> None:
        while not self.enough.is_set():
            self._send()
            time.sleep(0.002)
        for client in self._clients.values():
            client.close()

    def _send(self) -> None:
        value, partition = Sent(self.name, self.sent), self.sent % self._load.partitions
        self.sent += 1
        self._load.history.note_sent(value, partition, once=False)
        arguments = f"{self._load.topic} {self._keys[partition]}:{value.producer}:{value.number} acks=all"
        line = f"V1|{value.number}|PRODUCE|{arguments}"
        while not self.hopeless.is_set():
            answer = self._ask(self._ports[self._chosen[partition]], line)
            head, _, payload = answer.partition("|OK|")
            if head == f"V1|{value.number}" and payload:
                words = dict(word.split("=") for word in payload.split(" "))
                self._load.history.note_acknowledged(value, (int(words["partition"]), int(words["offset"])))
                self.acknowledged += 1
                return
            self.refusals.append(answer)
            self._chosen[partition] = (self._chosen[partition] + 1) % len(self._ports)
            time.sleep(_AGAIN)

    def _ask(self, port: int, line: str) -> str:
        """The answer; "" where there is none."""
        try:
            if port not in self._clients:
                self._clients[port] = TextClient(port)
                self._clients[port].socket.settimeout(_PATIENCE)
            answer = self._clients[port].ask(line)
        except OSError:
            answer = ""
        if answer == "" and port in self._clients:
            self._clients.pop(port).close()
        return answer


def _find_key(partition: int, partitions: int) -> str:
    """A key of this partition."""
    return next(key for key in map(str, count()) if _hash(key.encode()) % partitions == partition)


def _hash(key: bytes) -> int:
    """FNV-1a, 32 bits."""
    value = 0x811C9DC5
    for byte in key:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value
