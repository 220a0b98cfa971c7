"""The table of leadership: complete, drawn in the docs, and true of whatever happens to a partition in any order."""

from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from korvet_fast.core.partition.diagram import draw
from korvet_fast.core.partition.leadership import (
    ALLOWS,
    ERRORS,
    TABLE,
    Act,
    Event,
    Leadership,
    LeadershipState,
    Operation,
    Refusal,
)
from korvet_fast.errors import Errors
from twin.profile import examples

LEADING = {
    LeadershipState.LEADER,
    LeadershipState.UNDER_MIN_ISR,
    LeadershipState.RECOVERING,
    LeadershipState.REACQUIRING,
}


def reach(state: LeadershipState) -> Leadership:
    """A leadership in this state."""
    paths: dict[LeadershipState, list[Event]] = {
        LeadershipState.NOT_LEADER: [],
        LeadershipState.ACQUIRING: [Event.ACQUIRE],
        LeadershipState.LEADER: [Event.ACQUIRE, Event.ACQUIRED],
        LeadershipState.UNDER_MIN_ISR: [Event.ACQUIRE, Event.ACQUIRED, Event.COPIES_MISSING],
        LeadershipState.RECOVERING: [Event.ACQUIRE, Event.ACQUIRED, Event.APPEND_FAILED],
        LeadershipState.REACQUIRING: [Event.ACQUIRE, Event.ACQUIRED, Event.HISTORY_CHANGED],
        LeadershipState.DELETED: [Event.DELETED],
    }
    leadership = Leadership("t:0")
    for event in paths[state]:
        leadership.on(event, event.value)
    assert leadership.state is state
    return leadership


def test_the_diagram_in_the_docs_is_that_of_the_table() -> None:
    page = Path(__file__).parents[4] / "docs" / "leadership.md"
    assert page.read_text().splitlines() == list(draw()), "make diagrams"


def test_every_event_is_decided_in_every_state() -> None:
    assert set(TABLE) == {(state, event) for state in LeadershipState for event in Event}
    for (state, _), (act, then) in TABLE.items():
        if act in (Act.NOTHING, Act.BUG):
            assert then is state


def test_every_state_has_its_operations_and_an_error_that_exists() -> None:
    assert set(ALLOWS) == set(ERRORS) == set(LeadershipState)
    for state in LeadershipState:
        complete = ALLOWS[state] == set(Operation)
        assert complete == (state is LeadershipState.LEADER)
        assert ERRORS[state] in ({""} if complete else set(Errors) - {Errors.NONE})


def test_who_is_no_leader_learns_of_failures_without_becoming_one() -> None:
    """Appends of an earlier leadership fail later, and the store's history changes whoever leads."""
    for state in (LeadershipState.NOT_LEADER, LeadershipState.ACQUIRING, LeadershipState.DELETED):
        for event in (Event.APPEND_FAILED, Event.DISOWNED, Event.FENCED, Event.HISTORY_CHANGED):
            leadership = reach(state)
            before = leadership.refusal
            assert leadership.on(event, "late") is Act.NOTHING
            assert (leadership.state, leadership.refusal) == (state, before)


@pytest.mark.parametrize("event", [Event.RESIGNED, Event.DELETED])
def test_a_log_that_comes_too_late_is_not_led(event: Event) -> None:
    leadership = reach(LeadershipState.ACQUIRING)
    assert leadership.on(event, "meanwhile") is Act.LET_GO
    state = leadership.state
    assert leadership.on(Event.ACQUIRED) is Act.NOTHING
    assert leadership.state is state
    assert not leadership.leads


def test_clients_are_told_the_first_reason_to_reacquire_a_log_until_it_is_known_who_leads() -> None:
    leadership = reach(LeadershipState.LEADER)
    leadership.on(Event.APPEND_FAILED, "the disk is full")
    assert leadership.refusal == Refusal("KAFKA_STORAGE_ERROR", "the disk is full")
    leadership.on(Event.APPEND_FAILED, "no replicas", "NOT_ENOUGH_REPLICAS")
    assert leadership.refusal == Refusal("NOT_ENOUGH_REPLICAS", "no replicas")
    leadership.on(Event.HISTORY_CHANGED, "a replica took over")
    for event in (Event.APPEND_FAILED, Event.DISOWNED, Event.HISTORY_CHANGED):
        assert leadership.on(event, "later", "KAFKA_STORAGE_ERROR") is not Act.NOTHING
        assert leadership.refusal == Refusal("NOT_LEADER_OR_FOLLOWER", "a replica took over")
    leadership.on(Event.COPIES_MISSING, "no replicas", "NOT_ENOUGH_REPLICAS")
    assert leadership.refusal == Refusal("NOT_ENOUGH_REPLICAS", "no replicas")
    leadership.on(Event.RECOVERED)
    assert leadership.refusal is None


def test_what_cannot_happen_is_told_as_a_bug() -> None:
    for (state, event), step in TABLE.items():
        if step.act is Act.BUG:
            leadership = reach(state)
            steps = leadership.steps
            with pytest.raises(RuntimeError, match=f"is {state.value} cannot meet: {event.value}"):
                leadership.on(event)
            assert (leadership.state, leadership.steps) == (state, steps)


class Life(RuleBasedStateMachine):
    """Whatever happens to a partition, in any order, with or without what its broker does about it."""

    def __init__(self) -> None:
        super().__init__()
        self.leadership = Leadership("t:0")
        self.acquiring = self.asking = False  # the store has not answered yet
        self.asked_at = -1  # steps when it was asked for the end
        self.deleted = False

    def happen(self, event: Event, detail: str = "it happened", error: str = "") -> None:
        before, steps = self.leadership.state, self.leadership.steps
        act = self.leadership.on(event, detail, error)
        assert (act, self.leadership.state) == TABLE[before, event]
        assert self.leadership.steps == steps + (act is not Act.NOTHING)
        self.acquiring = self.acquiring or act is Act.ASK_FOR_LOG
        if act in (Act.ASK_FOR_END, Act.QUEUE) and not self.asking:
            self.asking, self.asked_at = True, self.leadership.steps

    @rule()
    def acquire(self) -> None:
        if not self.acquiring:
            self.happen(Event.ACQUIRE, "")

    @rule(well=st.booleans())
    def store_answers_for_the_log(self, well: bool) -> None:
        if self.acquiring:
            self.acquiring = False
            self.happen(Event.ACQUIRED if well else Event.ACQUIRE_FAILED, "" if well else "the store is down")

    @rule(
        event=st.sampled_from((Event.APPEND_FAILED, Event.COPIES_MISSING, Event.DISOWNED, Event.HISTORY_CHANGED)),
        error=st.sampled_from(("", "NOT_ENOUGH_REPLICAS")),
    )
    def fail(self, event: Event, error: str) -> None:
        self.happen(event, "it failed", error)

    @rule(answer=st.sampled_from((Event.RECOVERED, Event.COPIES_MISSING, Event.APPEND_FAILED, Event.FENCED)))
    def store_answers_for_the_end(self, answer: Event) -> None:
        if self.asking:
            self.asking = False
            if answer is not Event.RECOVERED or self.asked_at == self.leadership.steps:
                self.happen(answer)
            elif self.leadership.leads and self.leadership.refusal is not None:  # out of date: ask again
                self.asking, self.asked_at = True, self.leadership.steps

    @rule()
    def ask_again(self) -> None:
        """The broker's work of every second."""
        if self.leadership.leads and self.leadership.refusal is not None and not self.asking:
            self.asking, self.asked_at = True, self.leadership.steps

    @rule(event=st.sampled_from((Event.FENCED, Event.RESIGNED)))
    def lose(self, event: Event) -> None:
        self.happen(event, "another broker leads")

    @rule(rarely=st.integers(0, 9))
    def delete(self, rarely: int) -> None:
        if rarely == 0:
            self.happen(Event.DELETED, "t:0 was deleted")
            self.deleted = True

    @invariant()
    def appends_are_refused_unless_it_leads_and_knows_the_end(self) -> None:
        leadership = self.leadership
        assert (
            (leadership.refusal is None)
            == (leadership.state is LeadershipState.LEADER)
            == leadership.may(Operation.APPEND)
        )
        assert leadership.knows_end == leadership.may(Operation.APPEND_HERE)
        assert leadership.leads == (leadership.state in LEADING) == leadership.may(Operation.READ)
        if leadership.refusal is not None:
            assert leadership.refusal.error in set(Errors) - {Errors.NONE}
            assert leadership.refusal.detail
            if leadership.state is not LeadershipState.RECOVERING:
                assert leadership.refusal.error == ERRORS[leadership.state]

    @invariant()
    def a_deleted_partition_stays_deleted(self) -> None:
        assert self.deleted == (self.leadership.state is LeadershipState.DELETED)

    @invariant()
    def who_must_find_out_asks_or_will_be_asked(self) -> None:
        if self.leadership.state is LeadershipState.ACQUIRING:
            assert self.acquiring


TestLife = Life.TestCase
TestLife.settings = examples(100)
