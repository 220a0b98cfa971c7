"""The forty faults, what is done in each, and the tests that do it with real processes: `make faults` runs them.

Their numbers are those of docs/reliability.md. A test that several faults share is run once in a round.
"""

from typing import NamedTuple

FILES, REDIS, SENTINEL, CLUSTER = "files", "Redis", "Redis with Sentinel", "Redis Cluster"
REPLICAS, WORKERS, TEXT, LEGACY = "replicated files", "files of several workers", "lines of text", "Kafka 0.7"

_HERE = "tests/faults"
_REDIS = "tests/faults/redis"
_GROUPS = "tests/faults/groups"
_ROUNDS = f"{_HERE}/replication/test_rounds.py"
_STOP = f"{_HERE}/test_stop.py"
_DEATH = f"{_REDIS}/test_death.py"
_EMPTY = f"{_REDIS}/test_empty.py"
_ROOM = f"{_REDIS}/test_room.py"
_FLUSH = f"{_REDIS}/test_slow_flush.py"
_COMMITS = f"{_REDIS}/test_commits.py"
_FAILOVER = f"{_REDIS}/test_failover.py"
_WALL = f"{_GROUPS}/test_wall_clock.py"
_COORDINATOR = f"{_GROUPS}/test_killed_coordinator.py"
_STROBE = f"{_HERE}/test_strobing_clock.py"
_NETWORK = f"{_HERE}/test_network.py"
_SILENT = f"{_HERE}/test_silent_peers.py"
_BROKERS = f"{_REDIS}/test_brokers.py"
_MEMBERS = "tests/compat/test_consumer_protocol.py"
_PRODUCERS = "tests/unit/core/partition/test_producer_state.py"
_WORKERS = f"{_HERE}/test_workers.py"
_SLEEPING = f"{_GROUPS}/test_sleeping_coordinator.py::test_groups_go_on_without_it_and_with_it"
_SEVERAL = "tests/compat/test_groups_several.py"
_MEMBERS_CHANGE = f"{_SEVERAL}::test_members_come_leave_and_die_while_coordinators_change"
_IN_TURN = f"{_SEVERAL}::test_brokers_restart_in_turn_and_nobody_rebalances"

_NAMED = (
    "over replicated files nobody is elected: of the longest wait 5 s are until another leader is named, and 4 s are "
    "`replica.lag.timeout`, as these tests set it, in which the former leader still counts as in sync; a client waits "
    "5 s for a broker that says nothing"
)


class Fault(NamedTuple):
    """`done`: what is done. `tests`: where -> as pytest takes them. `left`: what is not, and why.

    `figures`: what they mean, where that is not plain.
    """

    done: str
    tests: dict[str, tuple[str, ...]]
    left: str = ""
    figures: str = ""


PROCESSES: dict[str, Fault] = {
    "F01": Fault(
        "kill -9 of the broker under load",
        {
            FILES: (
                f"{_HERE}/test_kill_under_load.py",
                f"{_HERE}/test_groups_under_kill.py",
                f"{_HERE}/test_commits_under_kill.py",
            ),
            REDIS: (f"{_BROKERS}::test_killed_brokers_are_replaced",),
            REPLICAS: (_ROUNDS, f"{_HERE}/replication/test_demo_cluster.py"),
            WORKERS: (
                f"{_WORKERS}::test_killed_workers_are_replaced",
                f"{_WORKERS}::test_the_others_lead_before_a_dead_worker_is_started_again",
                f"{_WORKERS}::test_a_killed_parent_takes_its_workers_along",
                f"{_WORKERS}::test_kills_of_workers_and_of_their_parent_cost_a_group_nothing",
            ),
            TEXT: (f"{_HERE}/test_producer_doors.py::test_text_says_delivered_only_of_what_is_there",),
            LEGACY: (f"{_HERE}/test_legacy_kill.py",),
        },
    ),
    "F02": Fault(
        "SIGTERM of the broker at work",
        {
            FILES: (_STOP,),
            WORKERS: (
                f"{_WORKERS}::test_a_stop_and_a_start_in_good_order",
                f"{_WORKERS}::test_a_signal_to_each_process_ends_them_as_well",
            ),
        },
    ),
    "F03": Fault(
        "kill -9 of Redis, appendfsync always",
        {
            REDIS: (
                f"{_DEATH}::test_kill_9_loses_nothing_that_is_fsynced",
                f"{_DEATH}::test_while_the_server_is_down_nothing_is_acknowledged",
            )
        },
    ),
    "F04": Fault(
        "kill -9 of Redis, appendfsync everysec, while a flush hangs",
        {
            REDIS: (
                f"{_FLUSH}::test_kill_9_while_a_flush_hangs_is_told",
                f"{_FLUSH}::test_kill_9_while_a_flush_hangs_loses_nothing_that_was_waited_for",
            )
        },
    ),
    "F05": Fault("Redis comes back empty, or is emptied", {REDIS: (_EMPTY,)}),
    "F06": Fault(
        "the end of the append-only file, or of a log, is cut at each of 200 bytes",
        {
            FILES: (f"{_HERE}/test_torn_tail.py",),
            REDIS: (f"{_REDIS}/test_torn_file.py", f"{_REDIS}/test_torn_append.py"),
        },
        figures="over files the lost are the records that the cut took, of which there was no other copy; the broker "
        "says where a log ends now, unless the cut left whole batches only: such a log looks as if nothing was cut",
    ),
    "F07": Fault(
        "the append-only file, or a segment, is damaged in its middle",
        {FILES: (f"{_HERE}/test_damaged_segment.py",), REDIS: (f"{_REDIS}/test_damaged_file.py",)},
        figures="the lost are the records that were damaged, of which there was no other copy; over files the broker "
        "refuses to read them, but where a bit has turned it is the reader who finds that, by the checksum",
    ),
    "F08": Fault(
        "the disk is full; Redis with appendfsync always ends",
        {
            FILES: (f"{_HERE}/test_full_disk.py", f"{_GROUPS}/test_text_files_trouble.py"),
            REDIS: (f"{_ROOM}::test_a_full_disk_that_ends_the_server",),
            WORKERS: (f"{_WORKERS}::test_a_worker_killed_on_a_full_disk_is_back_when_there_is_room",),
        },
    ),
    "F09": Fault(
        "the disk is full, appendfsync everysec", {REDIS: (f"{_ROOM}::test_a_full_disk_that_stops_the_writes",)}
    ),
    "F10": Fault(
        "maxmemory is reached, noeviction; later a server that evicts",
        {
            REDIS: (
                f"{_ROOM}::test_no_memory_left",
                f"{_ROOM}::test_a_broker_starts_where_no_memory_is_left",
                f"{_COMMITS}::test_commits_at_maxmemory",
                f"{_REDIS}/test_promises.py",
            )
        },
    ),
    "F11": Fault(
        "Redis, or the disk, stands still for 1, 5 and 40 s: shorter and longer than calls wait, and than leases last",
        {
            REDIS: (
                f"{_DEATH}::test_a_pause_leaves_nothing_doubled",
                f"{_BROKERS}::test_redis_stands_still",
                f"{_GROUPS}/test_redis_stands_still.py",
            ),
            WORKERS: (f"{_WORKERS}::test_the_disk_stands_still",),
        },
    ),
    "F12": Fault(
        "the broker sleeps longer than its lease",
        {
            FILES: (f"{_STOP}::test_sigstop_is_a_pause",),
            REDIS: (
                f"{_BROKERS}::test_a_broker_that_slept_too_long_leads_no_more",
                f"{_HERE}/test_late_append.py",
                f"{_SLEEPING}[entries]",
                f"{_GROUPS}/test_two_coordinators.py",
            ),
            REPLICAS: (_ROUNDS,),
            WORKERS: (
                f"{_WORKERS}::test_a_worker_that_stands_still_is_killed",
                f"{_WORKERS}::test_all_processes_stand_still",
                f"{_SLEEPING}[workers]",
            ),
        },
        left="of two workers never both believe that they coordinate a group: who sleeps is killed, and its locks, "
        "which the kernel keeps, end with its process. So no worker that was replaced can answer any more, as a broker "
        "over Redis can (`test_two_coordinators.py`), and none can be cut off from the others' store",
        figures=_NAMED,
    ),
    "F13": Fault(
        "Redis loads slowly (LOADING)", {REDIS: (f"{_DEATH}::test_a_server_that_loads_slowly_keeps_its_topics",)}
    ),
    "F14": Fault(
        "Redis rewrites its file under load, on a slow disk",
        {REDIS: (f"{_FLUSH}::test_files_are_written_anew_on_a_slow_disk",)},
    ),
}

COPIES: dict[str, Fault] = {
    "F15": Fault(
        "the link to the replica stands still, the master is killed, the replica promoted",
        {
            REDIS: (
                f"{_FAILOVER}::test_two_copies_survive_a_stalled_link",
                f"{_FAILOVER}::test_one_copy_is_lost_and_told",
                f"{_REDIS}/test_too_few_copies.py",
                f"{_COMMITS}::test_commits_that_were_never_copied",
            )
        },
    ),
    "F16": Fault(
        "a failover by three Sentinels under load",
        {
            SENTINEL: (
                f"{_FAILOVER}::test_a_sentinel_failover_under_load",
                f"{_FAILOVER}::test_an_operators_failover_under_load",
                f"{_COMMITS}::test_commits_over_a_sentinel_failover",
            )
        },
    ),
    "F17": Fault(
        "the old master and one broker are cut off from the rest",
        {REDIS: (f"{_BROKERS}::test_two_masters_at_once",), REPLICAS: (_ROUNDS,)},
        figures="the longest wait over replicated files is that of F12",
    ),
    "F18": Fault("two masters at once", {REDIS: (f"{_BROKERS}::test_two_masters_at_once",)}),
    "F19": Fault("a slot moves, key by key, under load", {CLUSTER: (f"{_REDIS}/test_slot_move.py",)}),
    "F20": Fault(
        "a slot moves in one step, and that is given up midway",
        {},
        left="it needs Redis 8.4 or Valkey 9, and the tests' servers are older",
    ),
    "F21": Fault(
        "an empty replica takes the master's place",
        {REDIS: (f"{_EMPTY}::test_an_empty_replica_takes_the_masters_place",)},
    ),
}

NETWORK: dict[str, Fault] = {
    "F22": Fault(
        "a request is cut after each of its bytes",
        {FILES: (f"{_NETWORK}::test_a_request_cut_after_any_byte_is_applied_whole_or_not_at_all",)},
        figures="counted are clients beside those that are cut; of a request that is cut nothing is acknowledged",
    ),
    "F23": Fault(
        "the connection ends after the request and before the answer",
        {
            FILES: (
                f"{_NETWORK}::test_a_request_that_arrives_before_the_reset_is_stored_once",
                f"{_NETWORK}::test_a_real_client_on_a_network_that_cuts",
            )
        },
    ),
    "F24": Fault(
        "the answer comes after the client has sent again elsewhere",
        {FILES: (f"{_NETWORK}::test_an_answer_that_comes_after_the_retry_says_the_same",)},
    ),
    "F25": Fault("every byte by itself, both ways", {FILES: (f"{_NETWORK}::test_byte_by_byte_both_ways",)}),
    "F26": Fault(
        "a peer takes no answers",
        {
            FILES: (
                f"{_SILENT}::test_peers_that_take_no_answers",
                "tests/unit/net/test_connection_limits.py::test_a_peer_that_takes_no_replies_is_cut_off_and_starts_nothing_more",
                "tests/unit/net/test_server.py::test_deaf_peers_are_cut_off_sooner_when_memory_is_short",
            )
        },
        left="one broker over files, and 20 such peers; `make abuse` does it on every store",
    ),
    "F27": Fault(
        "a peer is gone without a word",
        {
            FILES: (
                f"{_SILENT}::test_peers_that_are_gone_without_a_word",
                "tests/unit/net/test_connection_limits.py::test_silence_ends_a_connection",
            )
        },
    ),
    "F28": Fault(
        "a flood of connections that send nothing",
        {FILES: (f"{_SILENT}::test_a_flood_of_peers_that_send_nothing", f"{_HERE}/test_descriptors.py")},
        left="3,000 connections from one address, not 10,000; `make abuse` opens more",
    ),
    "F29": Fault("a member is not heard, or hears nothing", {FILES: (f"{_GROUPS}/test_one_way.py",)}),
    "F30": Fault(
        "a slow and torn network between broker and Redis", {REDIS: (f"{_REDIS}/test_wire.py::test_slow_and_torn",)}
    ),
    "F31": Fault(
        "a pipeline to Redis is cut anywhere",
        {REDIS: (f"{_REDIS}/test_wire.py::test_a_pipeline_cut_anywhere_answers_each_append_with_its_own_outcome",)},
    ),
}

TIMES_AND_LIMITS: dict[str, Fault] = {
    "F32": Fault(
        "the broker's clock goes an hour back and two forward",
        {
            FILES: (
                f"{_WALL}::test_a_group_does_not_notice[embedded]",
                f"{_WALL}::test_commits_of_nobody_stay[embedded]",
            ),
            REDIS: (f"{_WALL}::test_a_group_does_not_notice[redis]", f"{_WALL}::test_commits_of_nobody_stay[redis]"),
        },
    ),
    "F33": Fault("the clock of Redis goes an hour back and two forward", {REDIS: (f"{_REDIS}/test_clock.py",)}),
    "F34": Fault(
        "the broker's clock goes to and fro every 10 ms: retention, leases",
        {
            FILES: (f"{_STROBE}::test_retention_keeps_what_is_young[files]",),
            REDIS: (
                f"{_STROBE}::test_retention_keeps_what_is_young[entries]",
                f"{_STROBE}::test_retention_keeps_what_is_young[batches]",
                f"{_STROBE}::test_leases_do_not_stand_on_it[entries]",
            ),
            WORKERS: (f"{_STROBE}::test_leases_do_not_stand_on_it[workers]",),
        },
    ),
    "F35": Fault(
        "batches in every order, sequences that wrap, epochs that rise, producers that were forgotten",
        {
            FILES: (
                _PRODUCERS,
                f"{_HERE}/test_wrapping_sequences.py",
                f"{_HERE}/test_trimmed_producers.py",
                f"{_HERE}/test_fenced_producers.py",
                f"{_HERE}/test_growth_producers.py",
            ),
            REDIS: (f"{_REDIS}/test_refused_producer.py",),
        },
        left="the sequences that wrap are tried over files, not over Redis",
        figures="records that somebody asked to delete are not counted, nor those of invented producers",
    ),
    "F36": Fault(
        "one instance twice, a paused member, a coordinator that dies in a join, a sync, a commit",
        {
            FILES: (
                f"{_MEMBERS}::test_a_second_member_of_one_instance_is_kept_out",
                "tests/compat/test_groups.py::test_a_static_member_that_has_been_replaced_is_told_so",
                f"{_GROUPS}/test_paused_member.py",
                f"{_COORDINATOR}::test_while_a_join_is_delayed[embedded]",
                f"{_COORDINATOR}::test_while_a_sync_is_delayed[embedded]",
            ),
            REDIS: (
                f"{_COORDINATOR}::test_while_a_join_is_delayed[redis]",
                f"{_COORDINATOR}::test_while_a_sync_is_delayed[redis]",
                f"{_COORDINATOR}::test_while_a_commit_is_under_way",
            ),
        },
        left="over Redis a member is not paused, and no instance is there twice",
    ),
    "F37": Fault(
        "few descriptors, few threads, little memory (control groups)",
        {FILES: (f"{_HERE}/test_descriptors.py", f"{_HERE}/test_threads.py", f"{_HERE}/test_small_memory.py")},
        left="a broker over files; the threads and the memory for requests are the same over Redis",
    ),
    "F38": Fault(
        "three brokers are restarted in turn under load",
        {
            REDIS: (
                f"{_BROKERS}::test_a_rolling_restart",
                f"{_IN_TURN}[entries-stop]",
                f"{_IN_TURN}[batches-kill]",
                f"{_MEMBERS_CHANGE}[entries]",
            ),
            WORKERS: (
                f"{_WORKERS}::test_a_rolling_restart",
                f"{_IN_TURN}[workers-stop]",
                f"{_IN_TURN}[workers-kill]",
                f"{_MEMBERS_CHANGE}[workers]",
            ),
        },
    ),
    "F39": Fault(
        "Redis was written by an older, or by a newer version; brokers of two versions at once",
        {REDIS: (f"{_REDIS}/test_versions.py",)},
        left="the newer one is this program with a higher number, as there is no other schema yet",
    ),
    "F40": Fault(
        "leaders and followers killed, cut off, paused, moved, a disk lost; an election that loses",
        {
            REPLICAS: (
                _ROUNDS,
                f"{_HERE}/replication/test_lost_disk.py",
                f"{_HERE}/replication/test_unclean.py",
                f"{_HERE}/replication/test_follower_flush.py",
            ),
            "in one process": ("tests/unit/core/replication",),
        },
        figures="the lost are those of the election that loses: how many, an operator is told before; in one process "
        "nothing is counted: these tests hold a simulation against rules of their own. In the longest wait two of "
        "three brokers were down until the test started them",
    ),
}

FAULTS: dict[str, Fault] = {**PROCESSES, **COPIES, **NETWORK, **TIMES_AND_LIMITS}
