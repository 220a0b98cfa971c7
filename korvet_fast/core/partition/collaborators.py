"""The parts of a broker that its partitions work with; a broker has one of each."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from korvet_fast.core.background import BackgroundTasks
from korvet_fast.core.clock import Clock
from korvet_fast.core.generation import MetadataVersion, StoreGeneration
from korvet_fast.core.partition.loss_journal import LossJournal
from korvet_fast.core.partition.producer_state import ProducerLimit
from korvet_fast.core.partition.recovery_queue import RecoveryQueue
from korvet_fast.rate_limited_log import RateLimitedLog
from korvet_fast.store.interface import Store


@dataclass(frozen=True, slots=True)
class PartitionCollaborators:
    """`on_fenced` is called when another broker has acquired a log. `draining`: long polls are answered at once."""

    store: Store
    clock: Clock
    tasks: BackgroundTasks
    generation: StoreGeneration
    metadata: MetadataVersion
    losses: LossJournal
    producer_limit: ProducerLimit
    on_fenced: Callable[[], None]
    log: RateLimitedLog  # for what clients can have repeated
    recovery_queue: RecoveryQueue = field(default_factory=RecoveryQueue)
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    # Held while wrappers of Kafka 0.7 are opened beside the loop: each may become many megabytes.
    opening: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))
