"""A broker's nodes in ZooKeeper, kept as they should be: made at the start, made again after a session has expired.

The broker does not depend on it: while ZooKeeper is away it serves, and is registered when ZooKeeper is back.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from functools import partial

from korvet_fast.errors import SettingError
from korvet_fast.zookeeper.connect_string import ConnectString
from korvet_fast.zookeeper.nodes import broker_nodes, broker_path, parents
from korvet_fast.zookeeper.session import ConnectionLost, ZooKeeperError, ZooKeeperSession

log = logging.getLogger(__name__)

_AWAY = "it cannot be reached"


class IdTaken(SettingError):
    """Another broker is registered under the same id. The text says what to do."""


class ZooKeeperRegistration:
    """The nodes of one broker, from `open` to `close`.

    `session_timeout`, `connection_timeout`: milliseconds, as Kafka's `zk.sessiontimeout.ms` and
    `zk.connectiontimeout.ms`. `topics`: the topics that clients of Kafka 0.7 are to find at this broker, with their
    numbers of partitions; it is asked again after each `refresh`. `registered`: whether ZooKeeper has all of it.
    """

    def __init__(
        self,
        where: ConnectString,
        session_timeout: int,
        connection_timeout: int,
        topics: Callable[[], Mapping[str, int]],
    ) -> None:
        self.registered = False
        self._where = where
        self._patience = connection_timeout / 1000
        self._retry = session_timeout / 1000  # a dead broker's nodes last so long
        self._topics = topics
        self._broker = -1
        self._value = ""
        self._session = ZooKeeperSession(where.hosts, session_timeout, self._follow)
        self._made: dict[str, str] = {}  # the nodes of the present session
        self._watched: set[str] = set()  # nodes that ZooKeeper reports nothing about while they stay as they are
        self._number = 0  # the number of that session
        self._wake = asyncio.Event()
        self._told = ""  # the last message about an absence that lasts
        self._first: asyncio.Future[None] | None = None  # ends when `open` need not wait any more
        self._task: asyncio.Task[None] | None = None

    async def open(self, broker: int, value: str) -> None:
        """Register under this id with this value (`nodes.broker_value`); returns when that is done.

        Returns as well if ZooKeeper cannot be reached in time, having said so in the log; the rest happens when it
        can be. Raises `IdTaken`: nothing is registered then.
        """
        self._broker, self._value = broker, value
        loop = asyncio.get_running_loop()
        self._first = loop.create_future()
        self._session.start()
        self._task = loop.create_task(self._run(self._first))
        self._task.add_done_callback(_report)
        try:
            await asyncio.wait_for(self._first, self._patience)
        except TimeoutError:
            if not self._session.connected:
                self._complain(_AWAY)
        except BaseException:
            await self.close()
            raise

    def refresh(self) -> None:
        """The topics may have changed: their nodes follow soon."""
        self._wake.set()

    async def close(self) -> None:
        """End the session, with which all nodes of this broker go."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._session.close()

    def _follow(self) -> None:
        if self._session.number != self._number:
            self._number = self._session.number
            self._made = {}  # not cleared: a call that is under way may still write into the former one
        self._watched = set()  # as above; what happened meanwhile is not told
        if not self._session.connected:
            self.registered = False
        self._wake.set()

    def _look_again(self, watched: set[str], path: str) -> None:
        """Somebody changed or deleted a node of ours."""
        watched.discard(path)
        self._wake.set()

    async def _run(self, first: asyncio.Future[None]) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if not self._session.connected:
                if first.done():
                    self._complain(_AWAY)
                continue
            try:
                await self._register()
            except ConnectionLost as error:  # the end of the connection wakes this task again
                log.debug("the connection to ZooKeeper %s was lost: %s", self._where, error)
            except IdTaken as error:
                if not first.done():
                    first.set_exception(error)
                    return
                await self._complain_and_wait(str(error))
            except ZooKeeperError as error:
                await self._complain_and_wait(f"it refused a call: {error}")
            else:
                if self.registered and not first.done():
                    first.set_result(None)

    async def _register(self) -> None:
        """Make the nodes that are missing, change those that differ, remove those that are too many."""
        made, watched = self._made, self._watched
        wanted = dict(broker_nodes(self._broker, self._value, self._topics()))
        lost = []
        for path, value in wanted.items():
            if made.get(path) == value and path in watched:
                continue
            if path in made and not await self._watch(watched, path, made[path]):
                lost.append(path)
                del made[path]
            if made.get(path) != value:
                await self._make(path, value.encode())
                made[path] = value
                if not await self._watch(watched, path, value):
                    self._wake.set()  # somebody was quicker, and nothing would tell of that
        for path in [path for path in made if path not in wanted]:
            await self._session.delete(self._where.chroot + path)
            del made[path]
        if lost:
            log.warning(
                "ZooKeeper %s: somebody deleted or changed %s%s; it is made again",
                self._where,
                lost[0],
                f" and {len(lost) - 1} more nodes of this broker" if lost[1:] else "",
            )
        if made is self._made and self._session.connected and (self._told or not self.registered):
            self.registered = True
            self._told = ""
            log.info("registered in ZooKeeper %s as broker %d", self._where, self._broker)

    async def _watch(self, watched: set[str], name: str, value: str) -> bool:
        """Have ZooKeeper tell of a change to a node of ours; False if it is not there as we made it."""
        notice = partial(self._look_again, watched, name)
        ours = False
        watched.add(name)  # before the answer is here: kazoo's threads may tell of a change first
        try:
            found = await self._session.watch(self._where.chroot + name, notice)
            ours = found is not None and found == (value.encode(), self._session.id)
        finally:
            if not ours:
                watched.discard(name)
        return ours

    async def _make(self, name: str, value: bytes) -> None:
        path = self._where.chroot + name
        for parent in parents(path):
            if await self._session.read(parent) is None:
                await self._session.create(parent, None, ephemeral=False)
        while not await self._session.create(path, value, ephemeral=True):
            found = await self._session.read(path)
            if found is None:
                continue
            if found.session == self._session.id:  # the node is to be changed, or the answer to its creation was lost
                if found.value != value:
                    await self._session.write(path, value)
                return
            if name == broker_path(self._broker) and found.value != value:
                raise IdTaken(self._explain_taken(found.value.decode(errors="replace")))
            # The node is of an earlier session, which ZooKeeper has not ended yet: the node would end with it.
            await self._session.delete(path)

    def _explain_taken(self, other: str) -> str:
        return (
            f"broker id {self._broker} is taken in ZooKeeper {self._where}, by {other}: give this broker another one, "
            f"--set node.id=NUMBER; or, if that is what is left of a broker that died, wait {self._retry:g} s "
            "(zookeeper.session.timeout.ms), and start again"
        )

    async def _complain_and_wait(self, why: str) -> None:
        self._complain(why)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), self._retry)
        self._wake.set()

    def _complain(self, why: str) -> None:
        """Say it once, until it is over or something else is the matter."""
        if why != self._told:
            self._told = why
            text = (
                "ZooKeeper %s: %s. Clients of Kafka 0.7 cannot find this broker there; it goes on, and registers later"
            )
            log.warning(text, self._where, why)


def _report(task: asyncio.Task[None]) -> None:
    """Log an error of ours, with its traceback."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("the registration in ZooKeeper ended", exc_info=error)
