"""The times of requests: what all of them waited, and what some of them took."""

from korvet_fast.core.request_times import RequestTimes


def test_a_wait_counts_for_all_and_in_the_whole_time_of_those_that_are_timed() -> None:
    times = RequestTimes()
    for _ in range(2 * RequestTimes.EVERY):
        times.note_wait(1.0)
        times.count += 1
    assert (times.waited, times.seconds) == (2.0 * RequestTimes.EVERY, 2.0)
