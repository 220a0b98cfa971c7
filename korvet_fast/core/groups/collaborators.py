"""What the groups of a broker work with: there is one of each in a broker."""

from dataclasses import dataclass

from korvet_fast.core.background import BackgroundTasks
from korvet_fast.core.clock import Clock
from korvet_fast.core.generation import StoreGeneration
from korvet_fast.rate_limited_log import RateLimitedLog
from korvet_fast.store.interface import Store


@dataclass(frozen=True, slots=True)
class GroupCollaborators:
    """`log` takes lines that clients can provoke."""

    store: Store
    clock: Clock
    tasks: BackgroundTasks
    generation: StoreGeneration
    log: RateLimitedLog
