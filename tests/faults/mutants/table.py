"""What each patch breaks, and the tests that have to notice: `make mutants` sees to it."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """`broken`: what the product does then. `tests`: as pytest takes them; one of them has to fail."""

    broken: str
    tests: tuple[str, ...]


MUTANTS: dict[str, Mutant] = {
    "no-fsync": Mutant(
        "acks=all does not wait for the disk",
        ("tests/faults/test_failing_flush.py::test_a_failed_flush_acknowledges_nothing",),
    ),
    "failed-flush-forgotten": Mutant(
        "a log goes on after a flush that failed",
        ("tests/faults/test_failing_flush.py::test_a_failed_flush_acknowledges_nothing",),
    ),
    "torn-tail-kept": Mutant(
        "recovery does not look at checksums",
        ("tests/faults/test_torn_tail.py",),
    ),
    "directory-not-locked": Mutant(
        "two processes may open one directory",
        ("tests/faults/test_refused_starts.py::test_the_directory_of_a_broker_that_runs",),
    ),
    "retention-eager": Mutant(
        "retention takes segments whose newest record is young",
        ("tests/faults/test_strobing_clock.py::test_retention_keeps_what_is_young[files]",),
    ),
    "retention-eager-redis": Mutant(
        "retention over Redis takes records that are young",
        (
            "tests/faults/test_strobing_clock.py::test_retention_keeps_what_is_young[entries]",
            "tests/faults/test_strobing_clock.py::test_retention_keeps_what_is_young[batches]",
        ),
    ),
    "watermark-too-early": Mutant(
        "records are shown before they are durable",
        ("tests/faults/test_failing_flush.py::test_a_failed_flush_acknowledges_nothing",),
    ),
    "watermark-from-start": Mutant(
        "after a restart the end is told before it is known",
        ("tests/faults/redis/test_high_watermark.py",),
    ),
    "sequence-not-checked": Mutant(
        "a gap in a producer's sequence is taken",
        ("tests/faults/redis/test_refused_producer.py",),
    ),
    "repetition-stored-again": Mutant(
        "a batch that is sent again is stored again",
        (
            "tests/faults/test_network.py::test_a_request_that_arrives_before_the_reset_is_stored_once",
            "tests/faults/test_network.py::test_an_answer_that_comes_after_the_retry_says_the_same",
        ),
    ),
    "producer-epoch-not-checked": Mutant(
        "a producer that was fenced goes on",
        ("tests/faults/test_fenced_producers.py",),
    ),
    "producer-state-not-read": Mutant(
        "a start after kill -9 does not read the producers of the last records",
        ("tests/faults/test_failing_flush.py::test_a_failed_flush_acknowledges_nothing",),
    ),
    "stale-producer-state-believed": Mutant(
        "a saved state below the log's start counts",
        ("tests/faults/test_trimmed_producers.py",),
    ),
    "fence-not-checked": Mutant(
        "who lost a log may append to it",
        ("tests/faults/test_late_append.py",),
    ),
    "epoch-not-bumped": Mutant(
        "who takes a log over goes on in the same epoch",
        ("tests/faults/redis/test_failover.py::test_a_sentinel_failover_under_load",),
    ),
    "loss-not-reported": Mutant(
        "what a failover lost is not told",
        ("tests/faults/redis/test_failover.py::test_one_copy_is_lost_and_told",),
    ),
    "too-much-reported": Mutant(
        "more is told to be lost than is",
        ("tests/faults/redis/test_failover.py::test_one_copy_is_lost_and_told",),
    ),
    "copies-not-waited-for": Mutant(
        "min.insync.replicas is not waited for",
        ("tests/faults/redis/test_too_few_copies.py",),
    ),
    "outcome-guessed": Mutant(
        "an append without an answer is called stored",
        ("tests/faults/redis/test_wire.py::test_a_pipeline_cut_anywhere_answers_each_append_with_its_own_outcome",),
    ),
    "eviction-allowed": Mutant(
        "a server that may evict logs is used",
        ("tests/faults/test_refused_starts.py::test_a_server_that_may_evict",),
    ),
    "isr-not-waited-for": Mutant(
        "the leader's own disk moves the high watermark",
        ("tests/faults/replication/test_follower_flush.py",),
    ),
    "commit-not-stored": Mutant(
        "a commit is answered, and only remembered",
        ("tests/faults/test_commits_under_kill.py",),
    ),
    "old-generation-commits": Mutant(
        "a commit is taken in whatever generation its sender is",
        ("tests/faults/groups/test_paused_member.py::test_what_it_had_is_read_by_others_and_it_comes_back",),
    ),
    "follower-not-flushed": Mutant(
        "a follower counts with what it has not flushed",
        ("tests/faults/replication/test_follower_flush.py",),
    ),
    # No client sees it: a broker writes one batch at a time, and recovery cuts half a batch off by its checksum.
    "refused-append-half-left": Mutant(
        "what was written of an append that is refused stays in the file",
        ("tests/store/test_disk.py::test_nothing_of_a_refused_append_comes_back",),
    ),
    "late-append-let-in": Mutant(
        "an append that Redis lost is carried out by a later start of Redis, after it was sent again",
        ("tests/faults/redis/test_torn_append.py",),
    ),
    "blank-voter-counts": Mutant(
        "a broker that lost its disk makes a majority for the metadata log",
        ("tests/faults/replication/test_lost_disk.py",),
    ),
    "threads-begun-late": Mutant(
        "threads begin when there is work for them, where the system may start none any more",
        ("tests/faults/test_threads.py::test_a_broker_that_may_start_no_more_threads_serves_all",),
    ),
}
