"""A client's connection as core sees it, whatever its dialect: turns of the loop, memory, requests that wait."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

from korvet_fast.core.acls.authorizer import Permissions
from korvet_fast.core.acls.binding import ANONYMOUS, Operation, ResourceType
from korvet_fast.core.audit import AuditEntry
from korvet_fast.core.broker import Broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.fair_lock import Changer
from korvet_fast.core.fair_queue import FairQueue, Pace, Turns
from korvet_fast.core.partition.refused_batches import RefusedBatches
from korvet_fast.core.quotas.entity import QuotaKey
from korvet_fast.errors import Errors, KorvetError

_SEARCHES = 4  # batches that are read and searched for one connection at a time

R = TypeVar("R")
# A dialect's own rule: why its request may not name this topic and partition, or None.
Refuse: TypeAlias = Callable[[str, int], KorvetError | None]


class Client(Protocol):
    """A session's view of its connection: turns of the loop, and memory for answers.

    `address`: the same object for all connections that are counted for one address. `encrypted`: the broker encrypts
    the replies, so their bytes are looked into.
    """

    turns: Turns
    encrypted: bool

    @property
    def address(self) -> object: ...

    def answer_room(self) -> int:
        """How many bytes the answer of one request may take; they are held until the next reply is made."""

    def reserve(self, size: int) -> "asyncio.Future[None] | None":
        """Hold `size` bytes for an answer until `release`. None: done. Cancelled if the connection is lost."""

    def release(self, size: int) -> None:
        """Give the bytes of `reserve` back when the request ends. It must end right after, without waiting."""

    def hold(self, size: int, late: "asyncio.Future[Any]") -> None:
        """Count `size` bytes as the client's until `late` ends: the request is answered before that."""

    def mute(self, seconds: float) -> None:
        """Read and start no more requests for so long (KIP-219); those under way go on, and are answered."""


class DelayedOperation(Protocol):
    """A request that waits for time, for data or for other clients (Kafka's word)."""

    def wake(self) -> None:
        """Have it answered now."""


class ClientSession:
    """The state that the services keep for one connection; each dialect's session adds how frames become replies.

    `last_produce` ends when the connection's produces so far have been appended; None if they have been. `refused`:
    batches that were refused while this broker did not lead, if there are any. `delayed` holds the requests that wait.
    `closed`: nobody waits for an answer any more. `peer`: the client's address, "" where none is known. `listener`:
    the number of the one that it came by. `permissions`: what `find_permissions` found for this principal; or None.

    `workers` do long work beside the loop. Without a `client` there is no limit on memory, and `queue` deals the turns.
    """

    __slots__ = (
        "_changer",
        "_principal",
        "_searches",
        "_turns",
        "_workers",
        "broker",
        "client",
        "closed",
        "delayed",
        "last_produce",
        "listener",
        "peer",
        "permissions",
        "refused",
    )

    def __init__(
        self, broker: Broker, workers: FairExecutor, client: Client | None = None, queue: FairQueue | None = None
    ) -> None:
        self.broker = broker
        self.client = client
        self.closed = False
        self.peer = ""
        self.listener = 0
        self.permissions: Permissions | None = None
        self._principal = ANONYMOUS
        self.delayed: set[DelayedOperation] = set()
        self.last_produce: asyncio.Future[None] | None = None
        self.refused: RefusedBatches | None = None
        self._workers = workers
        self._turns = Turns(queue or FairQueue()) if client is None else client.turns
        self._searches: asyncio.Semaphore | None = None
        self._changer: Changer | None = None

    @property
    def is_authenticated(self) -> bool:
        """Whether the client may do more than log in; always so where nobody has to."""
        return True

    @property
    def principal(self) -> str:
        """Who the client is (`User:ann`), by its certificate or its login."""
        return self._principal

    @principal.setter
    def principal(self, principal: str) -> None:
        if principal != self._principal:  # an http client says who it is with each request
            self._principal = principal
            self.permissions = None

    def find_permissions(self) -> Permissions | None:
        """What the client may do. None: there is no authorizer, and everybody may do everything."""
        if self.permissions is None and self.broker.authorizer is not None:
            self.permissions = self.broker.authorizer.find_permissions(self.principal, self.peer)
        return self.permissions

    def authorize(
        self,
        api: str,
        operation: Operation,
        resource: ResourceType,
        name: str,
        *,
        by_cluster: bool = False,
        always: bool = False,
    ) -> bool:
        """Whether the client may do this to the resource of this name. The audit log is told.

        `api`: the request that asks. `by_cluster`: whoever may do it to the cluster may do it to every resource.
        `always`: that it is allowed is written in any case, without an authorizer too.
        """
        permissions = self.find_permissions()
        if permissions is None:
            allowed = True
        elif by_cluster:
            allowed = permissions.allows_by_cluster(operation, resource, name)
        else:
            allowed = permissions.allows(operation, resource, name)
        if self.broker.audit is not None and (always or permissions is not None):
            self.note_decision(api, operation, resource, name, allowed=allowed, always=always)
        return allowed

    def note_decision(
        self, api: str, operation: Operation, resource: ResourceType, name: str, *, allowed: bool, always: bool = False
    ) -> None:
        """Tell the audit log what was decided; as `authorize` does."""
        audit = self.broker.audit
        if audit is not None and (always or not allowed or audit.logs_allowed):
            audit.put(AuditEntry(self.principal, self.peer, self._endpoint, api, allowed, operation, resource, name))

    def note_failed_authentication(self, api: str, reason: str, claimed: str = "") -> None:
        """Tell the audit log that the client is not who it says. `claimed`: the principal that it says, if any."""
        audit = self.broker.audit
        if audit is not None:
            entry = AuditEntry(claimed or self.principal, self.peer, self._endpoint, api, False, reason=reason)
            audit.put(entry)

    def check_creation(self, api: str, topic: str) -> None:
        """Raises `KorvetError` TOPIC_AUTHORIZATION_FAILED if the client may not have this topic created by `api`."""
        if not self.authorize(api, Operation.CREATE, ResourceType.TOPIC, topic, by_cluster=True):
            raise KorvetError(Errors.TOPIC_AUTHORIZATION_FAILED)

    def pace(self) -> Pace:
        """Measures how long a request holds the loop, from now on."""
        return Pace(self._turns)

    def offload(self, work: Callable[..., R], *arguments: object) -> "asyncio.Future[R]":
        """Have a worker do this beside the loop; addresses take turns, then the connections of one."""
        return self._workers.run_for(self._address, self, work, *arguments)

    def answer_room(self) -> int:
        """How many bytes on the heap this request's answer may take now; ask once, right before making it."""
        return sys.maxsize if self.client is None else self.client.answer_room()

    def mute(self, seconds: float) -> None:
        """Read and start none of the client's requests for so long (KIP-219)."""
        if self.client is not None:
            self.client.mute(seconds)

    def charge(self, key: QuotaKey, amount: int) -> None:
        """Count what a client without an id took, and mute it for as long as that is too much."""
        quotas = self.broker.quotas
        bucket = quotas.find(self.principal, None).get(key) if quotas.is_set else None
        if bucket is not None and (wait := bucket.take(amount, quotas.now())):
            quotas.throttled[key] += 1
            self.mute(wait)

    @property
    def wants_copies(self) -> bool:
        """Whether records are to be read as copies: views of files are the kernel's alone (`store.interface.Read`)."""
        return self.client is not None and self.client.encrypted

    @property
    def searches(self) -> asyncio.Semaphore:
        """Held while a batch is read and searched; few connections ever do that."""
        if self._searches is None:
            self._searches = asyncio.Semaphore(_SEARCHES)
        return self._searches

    @property
    def changer(self) -> Changer:
        """The turn of this client among those that change topics; few connections ever do."""
        if self._changer is None:
            self._changer = self.broker.topics.changing.open(self._address)
        return self._changer

    @property
    def _endpoint(self) -> object:
        """The endpoint of the listener that the client came by; "" where nobody has said."""
        listeners = self.broker.listeners
        return listeners[self.listener] if self.listener < len(listeners) else ""

    @property
    def _address(self) -> object:
        """The address that takes turns with others; all sessions without a connection have one in common."""
        return self.broker if self.client is None else self.client.address

    def note_wait(self, frame: bytearray, seconds: float) -> None:
        """A whole request has waited so long for its beginning, and begins now. Counted where requests are."""

    def release_memory(self) -> None:
        """Answer the requests that wait at this moment."""
        for operation in self.delayed:
            operation.wake()

    def close(self) -> None:
        """Answer the requests that wait, now and later: nobody waits for their answers.

        Those of now are answered in this client's turn: thousands of clients may go at once, each with many requests.
        """
        self.closed = True
        if self.delayed:
            self._turns.put_off(self.release_memory)
