"""The history of the data that a server holds: its process (run id) and its replication history (replid).

Either changes when data may have been lost: the process died, or a replica without the last writes took over. (A master
also takes a new replid when its first replica comes, or its last one has long been gone. Then it has no former one.)
"""

from typing import NamedTuple

from korvet_fast.store.redis.connection.url import RedisAddress

_NONE = "0" * 40


class ReplicationHistory(NamedTuple):
    """A server's history, as INFO tells it."""

    run_id: str  # new with every start
    history: str  # master_replid: new when the server became a master
    former: str  # master_replid2: the history it followed before
    shared_until: int  # second_repl_offset: `former` was shared up to here, in bytes of replication stream; -1 if none
    master: bool
    loading: bool = False  # the server reads its files, and answers nothing else

    def continues(self, old: "ReplicationHistory") -> bool:
        """Whether everything that was stored under the old history is still there."""
        return self.run_id == old.run_id and (self.history == old.history or self.former == _NONE)


def read_info(text: bytes) -> dict[str, str]:
    """INFO's reply as names and values."""
    lines = text.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def read_replication_history(info: dict[str, str]) -> ReplicationHistory:
    """From the sections `server`, `replication` and `persistence` of INFO."""
    return ReplicationHistory(
        info["run_id"],
        info["master_replid"],
        info["master_replid2"],
        int(info["second_repl_offset"]),
        info["role"] == "master",
        info.get("loading") == "1",
    )


def compare(
    known: dict[RedisAddress, ReplicationHistory], now: dict[RedisAddress, ReplicationHistory], gone: set[RedisAddress]
) -> str:
    """The change of the known histories, in a sentence; "" if all are still there.

    `now`: the masters that answer. `gone`: those known that are no masters any more. A master that is still one but
    does not answer is waited for.
    """
    told = []
    for endpoint, old in known.items():
        if endpoint not in gone and endpoint not in now:
            continue
        if not any(new.continues(old) for new in now.values()):
            told.append(_tell(endpoint, old, now))
    return "; ".join(told)


def _tell(endpoint: RedisAddress, old: ReplicationHistory, now: dict[RedisAddress, ReplicationHistory]) -> str:
    heirs = {place: new for place, new in now.items() if new.former == old.history}
    if endpoint in now:
        what = (
            f"{endpoint} was made a master anew" if now[endpoint].run_id == old.run_id else f"{endpoint} was restarted"
        )
    else:
        what = f"{next(iter(heirs))} took over from {endpoint}" if heirs else f"{endpoint} is no master any more"
    for new in heirs.values():
        return f"{what}: what was written from replication offset {new.shared_until} on is lost"
    return what
