"""Votes for the metadata log's leader: an operator names a broker, and more than half of the brokers must agree. Pure.

A broker agrees to each epoch once, and only with a log that has all that its own has (Raft's rule of votes). So an
epoch has one leader, and that one has every record that most brokers had.
"""

from collections.abc import Mapping
from typing import NamedTuple


class LogPosition(NamedTuple):
    """The position of a log: the epoch of its last record, and its end. Positions compare as Raft compares logs."""

    epoch: int
    end: int


class Promise(NamedTuple):
    """A broker's answer to a candidate: whether it agrees, the highest epoch it knows, and how far its log is."""

    granted: bool
    epoch: int
    position: LogPosition


class Voter:
    """A broker's promises as a voter. `epoch` and `leader` must be on disk before an answer leaves (-1: nobody)."""

    __slots__ = ("epoch", "leader")

    def __init__(self, epoch: int, leader: int) -> None:
        self.epoch = epoch
        self.leader = leader

    def vote(self, candidate: int, epoch: int, theirs: LogPosition, own: LogPosition, *, unclean: bool) -> Promise:
        """Answer a candidate. `unclean`: the operator accepts that records are lost."""
        granted = epoch > self.epoch and (unclean or theirs >= own)
        if granted:
            self.epoch, self.leader = epoch, candidate
        return Promise(granted, self.epoch, own)

    def update_leader(self, leader: int, epoch: int, *, elected: bool) -> bool:
        """A broker leads under this epoch, or stands for it; returns whether that is news.

        `elected`: it has the votes. Of several that stand for one epoch, a voter follows the elected one in the end.
        """
        if epoch < self.epoch or (epoch == self.epoch and (leader == self.leader or not elected)):
            return False
        self.epoch, self.leader = epoch, leader
        return True


def is_elected(promises: Mapping[int, Promise], voters: int) -> bool:
    """Whether more than half of the voters agreed. `promises`: by voter, the candidate's own included."""
    return sum(promise.granted for promise in promises.values()) > voters // 2


def explain_defeat(promises: Mapping[int, Promise], voters: int, own: LogPosition) -> str:
    """Why the candidate may not lead, in a sentence for the operator."""
    ahead = {voter: promise.position for voter, promise in promises.items() if promise.position > own}
    if ahead:
        voter, position = max(ahead.items(), key=lambda row: row[1])
        lost = f"{max(0, position.end - own.end)} records" if position.epoch == own.epoch else "records"
        return f"broker {voter} has {lost} of the metadata log that this one lacks: name broker {voter}"
    if len(promises) <= voters // 2:
        return f"only {len(promises)} of {voters} brokers answer, and more than half are needed"
    return "other brokers follow a later leader: try again"
