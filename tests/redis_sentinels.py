"""A master, a replica and three Sentinels that watch them, for failovers within a second or two."""

import time
from pathlib import Path

import redis

from redis_server import READY_WITHIN, RedisServer, free_port

NAME = "korvet"
# Their own clocks, in ms: hello messages, looks and elections that take seconds otherwise.
PACE = {
    "info-period": 100,
    "ping-period": 250,  # five times this long a replica's word counts
    "ask-period": 50,
    "publish-period": 100,
    "min-link-reconnect-period": 50,
    "election-timeout": 500,
    "slave-reconf-timeout": 500,
}

GIVEN_UP_AFTER = 6.0  # seconds


class Sentinels:
    """Three Sentinels over one master and one replica, each server in a directory of its own."""

    def __init__(self, program: str, directory: Path, **options: str | int) -> None:
        self.servers = [RedisServer(program, directory / f"node-{n}", **options) for n in range(2)]
        self.watchers: list[RedisServer] = []
        for number in range(3):
            port = free_port()
            watcher = RedisServer(program, directory / f"sentinel-{number}", sentinel=True, port=port, bind="127.0.0.1")
            watcher.options[f"sentinel monitor {NAME} 127.0.0.1"] = f"{self.servers[0].port} 1"
            # The first one sees a death long before the others, so that no two stand for election.
            watcher.options[f"sentinel down-after-milliseconds {NAME}"] = 4000 if number else 1000
            watcher.options[f"sentinel failover-timeout {NAME}"] = 2000
            self.watchers.append(watcher)

    @property
    def url(self) -> str:
        """As the broker takes it."""
        return f"redis+sentinel://{','.join(f'127.0.0.1:{w.port}' for w in self.watchers)}/{NAME}"

    @property
    def master(self) -> RedisServer:
        """The server that the first Sentinel sends clients to."""
        _, port = self.watchers[0].call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)
        return next(server for server in self.servers if server.port == int(port))

    @property
    def replica(self) -> RedisServer:
        """The other one."""
        master = self.master
        return next(server for server in self.servers if server is not master)

    def start(self) -> "Sentinels":
        """Start all and wait until every Sentinel knows both servers and the other Sentinels."""
        master, replica = (server.start() for server in self.servers)
        replica.follow(master)
        for watcher in self.watchers:
            watcher.start()
            for name, value in PACE.items():
                watcher.call("SENTINEL", "DEBUG", name, value)
        self.settle()
        for watcher in self.watchers:
            # Four times this long a Sentinel lets a promotion by another one stand that it has not heard of.
            watcher.call("SENTINEL", "DEBUG", "publish-period", 1000)
        return self

    def settle(self) -> None:
        """Wait until all Sentinels agree on the master and see a replica of it that is up."""
        deadline = time.monotonic() + READY_WITHIN
        while not self._agree():
            assert time.monotonic() < deadline, "the Sentinels do not agree"
            time.sleep(0.02)

    def _agree(self) -> bool:
        seen = set()
        for watcher in self.watchers:
            row = _pairs(watcher.call("SENTINEL", "MASTER", NAME))
            replicas = [_pairs(each) for each in watcher.call("SENTINEL", "REPLICAS", NAME)]
            linked = [each for each in replicas if each["flags"] == "slave" and each["master-link-status"] == "ok"]
            if row["flags"] != "master" or row["num-other-sentinels"] != "2" or not linked:
                return False
            seen.add(row["port"])
        return len(seen) == 1

    def failover(self) -> RedisServer:
        """Change the roles of the two living servers, as an operator does; returns the new master."""
        old = self.master
        deadline = time.monotonic() + READY_WITHIN
        asked = 0.0
        while self.master is old:
            assert time.monotonic() < deadline, "no failover happened"
            # Asked again: Sentinels give a failover up when a busy machine makes a step of it too slow.
            if time.monotonic() - asked > GIVEN_UP_AFTER:
                # A replica that is just being filled anew has nothing: Redis would promote it all the same.
                self.replica.wait_for("replication", master_link_status="up", master_sync_in_progress="0")
                try:
                    self.watchers[0].call("SENTINEL", "FAILOVER", NAME)
                    asked = time.monotonic()
                except redis.ResponseError as refused:
                    # One is on its way, or the replica has not been heard lately, as on a busy machine.
                    if not any(passing in str(refused) for passing in ("INPROG", "NOGOODSLAVE")):
                        raise
            time.sleep(0.05)
        return self.wait_for_other(old)

    def wait_for_other(self, old: RedisServer) -> RedisServer:
        """Until the Sentinels name another master than `old`, and it takes writes."""
        deadline = time.monotonic() + READY_WITHIN
        while (master := self.master) is old or master.info("replication")["role"] != "master":
            assert time.monotonic() < deadline, "no failover happened"
            time.sleep(0.02)
        return master

    def stop(self) -> None:
        """End all of them."""
        for server in [*self.watchers, *self.servers]:
            server.kill()


def _pairs(row: list[bytes]) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in zip(row[::2], row[1::2], strict=True)}
