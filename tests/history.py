"""The history of producers and consumers, and the rules that no fault may break."""

from collections.abc import Iterable, Mapping

from counts import note
from history_rules import RULES, Evidence, find_disorder, find_doubles
from journal import Journal, PartitionOffset, Sent, read_value


class History(Journal):
    """One run against one topic, written to by any number of threads and checked at the end."""

    def check(
        self,
        log: Mapping[int, list[tuple[int, bytes]]],
        *,
        may_lose: Iterable[PartitionOffset] = (),
        never: bool = False,
    ) -> set[Sent]:
        """Hold the run against what the topic holds at the end: partition -> (offset, value), rising.

        `may_lose`: places that the broker has reported as lost, each of them and nothing more: elsewhere everything
        acknowledged must be there, and there nothing may be, where somebody was told of a record. A copy of what was
        lost may stand elsewhere: one that was sent before, and of which the broker could not say what became of it.
        `never`: what was refused must not be there (only where the refusal was definite).
        Returns the acknowledged values that are gone. Raises `AssertionError` with every rule that was broken.
        """
        final = {partition: [(offset, read_value(value)) for offset, value in rows] for partition, rows in log.items()}
        evidence = Evidence(self, final, set(may_lose), never)
        lost = evidence.find_lost()
        note(
            acknowledged=len(self.acknowledged),
            lost=len(lost),
            told=sum(place in evidence.told for place in self.acknowledged.values()),
            doubled=len(list(find_doubles(evidence))),
            disordered=len(list(find_disorder(evidence))),
            wait=self.longest_wait,
        )
        broken = [f"{name}: {words}" for name, rule in RULES.items() for words in rule(evidence)]
        assert not broken, f"{len(broken)} rules broken:\n" + "\n".join(broken[:20])
        return lost
