"""The rows of the table, and what must be reached in each."""

from dataclasses import replace

from benchmarks.rows import Figure, Load, Ratio, Target

# Who takes part; workers only where several connections do, or many partitions.
BOTH = ("kafka", "embedded")
WITH_REDIS = (*BOTH, "redis")
BESIDE_RELAYS = (*WITH_REDIS, "relay-a", "relay-bpv", "relay-c")
EACH = (*BESIDE_RELAYS, "bare")
FLUSHED = (*WITH_REDIS, "raw")


def _against_kafka(target: Target | None = None) -> Ratio:
    return Ratio("embedded", "kafka", target)


def _at_least(times: float) -> Ratio:
    return _against_kafka(Target(at_least=times))


_FASTER = _against_kafka(Target(at_most=0.6))
_CPU = Figure("server_cpu_s_per_gb", "CPU s/GB", (_against_kafka(),))  # without Redis
_CPU_BESIDE_RELAYS = replace(_CPU, ratios=(_against_kafka(), Ratio("batches", "relay-bpv", Target(at_most=2))))


def _beside_relays(batches: float) -> tuple[Ratio, ...]:
    """Each layout beside a relay that stores the same entries; `batches`: times relay A at least."""
    return (
        Ratio("batches", "relay-a", Target(at_least=batches)),
        Ratio("batches", "relay-bpv"),
        Ratio("entries", "relay-c", Target(at_least=0.85)),
    )


def _bytes(size: int) -> str:
    return f"{size // 1024} KB" if size < 1 << 20 else f"{size >> 20} MB"


def _several(connections: int, what: str) -> str:
    return f", {connections} {what}" if connections > 1 else ""


def _produce(
    batch: int,
    record: int,
    times: float,
    connections: int = 1,
    peers: tuple[str, ...] = BOTH,
    relayed: float | None = None,
) -> Load:
    """`times` Kafka at least; `relayed`: times relay A, where relays take part."""
    beside = _beside_relays(relayed) if relayed else ()
    shape = ("--batch-bytes", str(batch), "--record-bytes", str(record), "--connections", str(connections))
    cpu = (_CPU_BESIDE_RELAYS,) if relayed else (_CPU,) if batch == 1 << 16 else ()
    figures = (Figure("mb_per_s", "MB/s", (_at_least(times), *beside)), *cpu)
    title = f"produce {_bytes(batch)} of {record} B, acks=1{_several(connections, 'connections')}"
    return Load(title, shape, figures, peers=peers)


def _spread(partitions: int) -> Load:
    shape = ("--batch-bytes", "1024", "--partitions", str(partitions), "--per-request", "100")
    title = f"produce 1 KB of 100 B to each of 100 partitions a request, {partitions:,} in all"
    # Every partition is written to first: Kafka makes a partition's files then, half a minute's work for a thousand.
    fill = (*shape, "--in-flight", str(partitions // 100), "--seconds", "1")
    figures = (Figure("mb_per_s", "MB/s", (_at_least(2),)),)
    return Load(title, shape, figures, fill=fill, kept=True, peers=BOTH, partitions=partitions)


def _fetch(
    most: int, batch: int, record: int, connections: int = 1, peers: tuple[str, ...] = BOTH, cpu: bool = False
) -> Load:
    shape = ("--batch-bytes", str(batch), "--record-bytes", str(record))
    readers = ("--connections", str(connections), "--max-bytes", str(most))
    enough = Target(at_least=0.8)
    beside = (Ratio("batches", "relay-a", enough), Ratio("entries", "relay-c", enough)) if "redis" in peers else ()
    return Load(
        f"fetch {_bytes(most)}, batches of {_bytes(batch)}, {record} B{_several(connections, 'consumers')}",
        (*shape, *readers),
        (Figure("mb_per_s", "MB/s", (_at_least(1.2), *beside)), *((_CPU,) if cpu else ())),
        mode="fetch",
        # As much for everybody: what is larger than fits into memory maps and caches is read more slowly.
        fill=(*shape, "--seconds", "1", "--megabytes", "500"),
        kept=True,
        peers=peers,
    )


def _beside_workers(load: Load, times: float, faster: float | None = None) -> Load:
    """The same for two workers too: so many times Kafka's first figure, and `faster` times one worker's."""
    target = None if faster is None else Target(at_least=faster)
    more = (Ratio("workers", "embedded", target), Ratio("workers", "kafka", Target(at_least=times)))
    first, *others = load.figures
    figures = (replace(first, ratios=(*first.ratios, *more)), *others)
    return replace(load, figures=figures, peers=(*load.peers, "workers"))


def _java(records: int, size: int) -> Load:
    figures = (
        Figure("java_produced_per_s", "produced/s", (_at_least(1.2),)),
        Figure("java_consumed_per_s", "consumed/s", (_at_least(1.2),)),
    )
    return Load(
        f"Kafka's ProducerPerformance and ConsumerPerformance, {size:,} B",
        (),
        figures,
        peers=BOTH,
        java=(records, size),
    )


def _paced(share: float, *further: Ratio) -> Load:
    """`further`: than Kafka, for the median."""
    return Load(
        f"16 KB of 1024 B, acks=1, at {share:.0%} of what Kafka takes at most",
        ("--batch-bytes", "16384", "--record-bytes", "1024"),
        (
            Figure("p50_us", "µs p50", (_FASTER, *further)),
            Figure("p99_us", "µs p99", (_FASTER,)),
            Figure("p999_us", "µs p99.9", (_against_kafka(),)),
        ),
        peers=("kafka", "embedded", "bare"),
        share=share,
    )


_ONE = ("--record-bytes", "200", "--batch-bytes", "1", "--in-flight", "1")
_EIGHTFOLD = Target(at_least=8)
_NEAR_RELAY = Target(at_most=1.25)


def _idle(connections: int) -> Load:
    return Load(
        f"{connections:,} idle connections beside one 200 B produce at a time",
        (*_ONE, "--idle", str(connections)),
        (
            Figure("p50_us", "µs p50", (_against_kafka(),)),
            Figure("p99_us", "µs p99", (_against_kafka(),)),
            Figure("broker_rss_mb", "MB resident", (_against_kafka(),)),
        ),
        peers=BOTH,
    )


KB, MB = 1 << 10, 1 << 20

FETCHED = (*WITH_REDIS, "relay-a", "relay-c", "raw")

WARM_UP = _produce(16 * KB, 100, 3, peers=(*WITH_REDIS, "bare"))
LOADS = (
    _produce(1 * KB, 100, 3),
    _produce(1 * KB, 100, 3, connections=4),
    WARM_UP,
    _produce(16 * KB, 1024, 3, peers=EACH, relayed=0.7),
    _beside_workers(_produce(16 * KB, 1024, 3, connections=4, peers=BESIDE_RELAYS, relayed=0.7), 3, 1.5),
    _produce(64 * KB, 100, 2.5),
    _produce(64 * KB, 1024, 2.5, peers=EACH, relayed=0.88),
    _beside_workers(_produce(64 * KB, 1024, 2.5, connections=4, peers=BESIDE_RELAYS, relayed=0.8), 2.5),
    _produce(1 * MB, 1024, 1.5),
    _produce(1 * MB, 1024, 1.5, connections=4),
    Load(
        "produce 64 KB of 1024 B, acks=all: ours fsynced, Kafka not",
        ("--batch-bytes", "65536", "--record-bytes", "1024", "--acks", "-1"),
        (
            Figure(
                "mb_per_s",
                "MB/s",
                (_at_least(1.5), Ratio("batches", "raw batches"), Ratio("entries", "raw entries")),
            ),
        ),
        durability="fsync",
        always=True,
        peers=FLUSHED,
    ),
    _beside_workers(_spread(100), 2),
    _beside_workers(_spread(1_000), 2),
    _fetch(64 * KB, 16 * KB, 1024),
    _fetch(64 * KB, 16 * KB, 1024, connections=8),
    _fetch(1 * MB, 64 * KB, 100),
    _fetch(1 * MB, 16 * KB, 1024, peers=FETCHED),
    _fetch(1 * MB, 64 * KB, 1024, peers=FETCHED, cpu=True),
    _beside_workers(_fetch(1 * MB, 64 * KB, 1024, connections=8), 1.2, 2),
    Load(
        "one 200 B produce at a time, acks=1",
        _ONE,
        (
            Figure(
                "p50_us",
                "µs p50",
                (
                    _against_kafka(Target(at_most=0.55)),
                    Ratio("batches", "relay-a", _NEAR_RELAY),
                    Ratio("entries", "relay-a", _NEAR_RELAY),
                ),
            ),
            Figure("p99_us", "µs p99", (_FASTER,)),
            Figure("p999_us", "µs p99.9", (_against_kafka(),)),
        ),
        peers=(*WITH_REDIS, "relay-a", "bare"),
    ),
    _paced(0.1, Ratio("embedded", "bare", Target(at_most=1.5))),
    _paced(0.5),
    Load(
        "16 producers of one 200 B at a time, acks=all: ours fsynced, Kafka not",
        (*_ONE, "--acks", "-1", "--connections", "16"),
        (
            Figure("alone_requests_per_s", "produces/s of one"),
            Figure(
                "requests_per_s",
                "produces/s of 16",
                (
                    Ratio("embedded", "embedded", field="alone_requests_per_s"),
                    Ratio("entries", "entries", _EIGHTFOLD, "alone_requests_per_s"),
                    Ratio("batches", "batches", _EIGHTFOLD, "alone_requests_per_s"),
                ),
            ),
        ),
        durability="fsync",
        alone=(*_ONE, "--acks", "-1"),
        always=True,
        peers=WITH_REDIS,
    ),
    Load(
        "100 B records in batches of 64 KB, from producer to consumer; bare: copied through a file, no broker",
        ("--batch-bytes", "65536", "--record-bytes", "100", "--max-bytes", str(MB)),
        (Figure("mb_per_s", "MB/s", (_against_kafka(), Ratio("embedded", "bare"))),),
        mode="pipe",
        peers=("kafka", "embedded", "bare"),
    ),
    _java(1_000_000, 100),
    _java(200_000, 1_024),
    _java(20_000, 10_240),
    Load(
        "Kafka's EndToEndLatency, one 100 B record at a time, acks=1",
        (),
        (
            Figure("java_p50_ms", "ms p50", (_against_kafka(),)),
            Figure("java_p99_ms", "ms p99", (_against_kafka(),)),
        ),
        mode="end-to-end",
        peers=BOTH,
        java=(5_000, 100),
    ),
    _idle(1_000),
    _idle(5_000),
)

PARTITIONS = 10_000
MANY_PARTITIONS = Load(
    "10,000 partitions in turn, one 200 B produce at a time",
    (*_ONE, "--partitions", str(PARTITIONS)),
    (
        Figure("create_seconds", "s to create", (_against_kafka(),)),
        Figure("p50_us", "µs p50", (_against_kafka(),)),
        Figure("p99_us", "µs p99", (_against_kafka(),)),
        Figure("broker_rss_mb", "MB resident", (_against_kafka(),)),
        Figure("metadata_us", "µs of Metadata, p50", (_against_kafka(),)),
        Figure("restart_seconds", "s to ready again", (_against_kafka(Target(at_most=0.2)),)),
        Figure("idle_mb", "MB resident then", (_against_kafka(Target(at_most=0.2)),)),
    ),
    peers=BOTH,
    partitions=PARTITIONS,
)

START = Load(
    "started on an empty directory",
    (),
    (
        Figure("ready_seconds", "s to ready", (_against_kafka(Target(below=0.5)),)),
        Figure("idle_mb", "MB resident, idle", (_against_kafka(Target(below=80)),)),
    ),
    mode="start",
    peers=("kafka", "embedded", "bare"),
)
