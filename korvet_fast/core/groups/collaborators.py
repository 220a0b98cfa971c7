"""The parts of a broker that its groups use."""

from dataclasses import dataclass

from korvet_fast.core.background import BackgroundTasks
from korvet_fast.core.clock import Clock
from korvet_fast.core.generation import StoreGeneration
from korvet_fast.rate_limited_log import RateLimitedLog
from korvet_fast.store.interface import Store


@dataclass(frozen=True, slots=True)
class GroupCollaborators:
    """A broker has one of each. `log`: for lines that clients can cause."""

    store: Store
    clock: Clock
    tasks: BackgroundTasks
    generation: StoreGeneration
    log: RateLimitedLog
