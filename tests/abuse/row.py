"""A row of the table: what one attack did to a broker, and which of it is not allowed."""

from dataclasses import dataclass, field

MIB = 1 << 20
SINGLE, COMBINED = 0.1, 0.25  # seconds that a well-behaved client may wait
MEMORY = 500 * MIB  # above the start
LOG = 256 * 1024  # bytes of log that an attack may cause
SOCKETS = 100  # that the broker itself may open for one attack to the store


@dataclass
class Row:
    """`waits`: role -> seconds of the longest wait that was the broker's. Memory in bytes, times in seconds."""

    number: str
    sentence: str
    store: str
    bound: float
    seconds: float = 0.0
    waits: dict[str, float] = field(default_factory=dict)
    excused: int = 0
    echo: float = 0.0
    may_keep: int = MEMORY  # bytes that may be left of the attack a moment later
    started_with: int = 0  # memory at the broker's start
    before: int = 0
    peak: int = 0
    after: int = 0
    sockets: tuple[int, int, int] = (0, 0, 0)  # before, peak, after
    files: tuple[int, int] = (0, 0)
    strikes: int = 0
    ended: int = 0  # peers of the attack that the broker ended
    log_bytes: int = 0
    remarks: list[str] = field(default_factory=list)

    @property
    def longest(self) -> float:
        return max(self.waits.values(), default=0.0)

    def broken(self) -> list[str]:
        """The broken limits of the row, in words."""
        found = [
            f"{role} waited {1000 * seconds:.0f} ms, more than {1000 * self.bound:.0f}"
            for role, seconds in self.waits.items()
            if seconds > self.bound
        ]
        if self.peak - self.started_with > MEMORY:
            found.append(f"memory grew by {(self.peak - self.started_with) // MIB} MiB, more than {MEMORY // MIB}")
        if self.after - self.before > self.may_keep:
            found.append(f"{(self.after - self.before) // MIB} MiB are kept of it, more than {self.may_keep // MIB}")
        if self.sockets[2] > self.sockets[0] + 2:
            found.append(f"{self.sockets[0]} sockets before, {self.sockets[2]} after")
        if self.store == "cluster" and self.sockets[1] > SOCKETS:
            found.append(f"{self.sockets[1]} sockets at a time, more than {SOCKETS}")
        if self.log_bytes > LOG:
            found.append(f"{self.log_bytes} bytes of log, more than {LOG}")
        return [f"{self.number} {self.store}: {what}" for what in found + self.remarks]
