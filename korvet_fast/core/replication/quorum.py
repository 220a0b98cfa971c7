"""Votes for the metadata log's leader: an operator names a broker, and more than half of the brokers must agree. Pure.

A broker agrees to each epoch once, and only with a log that has all that its own has (Raft's rule of votes). So an
epoch has one leader, and that one has every record that most brokers had.

A broker that lost its disk does not know what it had: its agreement counts only where the candidate's log is empty too
(nobody has begun), or where all brokers agree (KIP-853 gives such a voter a new identity for the same reason).
"""

from collections.abc import Mapping
from typing import NamedTuple


class LogPosition(NamedTuple):
    """The position of a log: the epoch of its last record, and its end. Positions compare as Raft compares logs."""

    epoch: int
    end: int


class Promise(NamedTuple):
    """A broker's answer to a candidate: whether it agrees, the highest epoch it knows, and how far its log is.

    `is_new`: it began with an empty directory, and has not copied yet all that is safe.
    """

    granted: bool
    epoch: int
    position: LogPosition
    is_new: bool = False


class Voter:
    """A broker's promises as a voter. `epoch` and `leader` must be on disk before an answer leaves (-1: nobody)."""

    __slots__ = ("epoch", "leader")

    def __init__(self, epoch: int, leader: int) -> None:
        self.epoch = epoch
        self.leader = leader

    def vote(self, candidate: int, epoch: int, theirs: LogPosition, own: LogPosition, *, unclean: bool) -> Promise:
        """Answer a candidate. `unclean`: the operator accepts that records are lost.

        Whom this broker follows under this epoch already, as it voted for it or only heard of it, has the vote (again),
        unless that leadership has begun: it is not to begin once more with another log.
        """
        again = (epoch, candidate) == (self.epoch, self.leader) and max(own, theirs).epoch < epoch
        granted = (epoch > self.epoch or again) and (unclean or theirs >= own)
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


def is_elected(promises: Mapping[int, Promise], voters: int, own: LogPosition, *, unclean: bool = False) -> bool:
    """Whether more than half of the voters agreed; new ones count as the module says, or where the vote is `unclean`.

    `promises`: by voter, the candidate's own included; `own`: the candidate's position.
    """
    granted = [promise for promise in promises.values() if promise.granted]
    counted = granted if unclean or own.end == 0 else [promise for promise in granted if not promise.is_new]
    return len(counted) > voters // 2 or len(granted) == voters


def explain_defeat(promises: Mapping[int, Promise], voters: int, own: LogPosition) -> str:
    """Why the candidate may not lead, in a sentence for the operator."""
    ahead = {voter: promise.position for voter, promise in promises.items() if promise.position > own}
    if ahead:
        voter, position = max(ahead.items(), key=lambda row: row[1])
        count = position.end - own.end if position.epoch == own.epoch else 0
        lost = "1 record" if count == 1 else f"{count} records" if count else "records"
        return f"broker {voter} has {lost} of the metadata log that this one lacks: name broker {voter}"
    if len(promises) <= voters // 2:
        return f"only {len(promises)} of {voters} brokers answer, and more than half are needed"
    if new := sorted(voter for voter, promise in promises.items() if promise.granted and promise.is_new):
        return (
            f"broker {', '.join(map(str, new))} began with an empty directory, and does not count before the metadata "
            "log is copied: start the brokers that are away. If they are lost too, --unclean names this one all the "
            "same, and what only they knew of topics, leaders and brokers in sync is lost"
        )
    return "other brokers follow a later leader: try again"
