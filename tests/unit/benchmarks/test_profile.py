"""Stacks of the broker's loop are counted for the right part."""

import pytest

from benchmarks.profile import divide

LOOP = "thread (12): MainThread;Runner.run (asyncio/runners.py:118);uv_run (core.c:464)"
PYTHON = "Connection.buffer_updated (korvet_fast/net/connection.py:97)"
APPEND = "produce (korvet_fast/wire/kafka/api/produce.py:71);Log._write (korvet_fast/store/embedded/log.py:122)"


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        ("uv__io_poll (linux.c:1452);epoll_pwait (libc.so.6)", "waiting"),
        (
            "uv__io_poll (linux.c:1546);uv__stream_io (stream.c:1210);uv__read (stream.c:1063);read (libc.so.6)",
            "sockets",
        ),
        (f"{PYTHON};UVStream__exec_write (loop.c:108037);uv__try_write (stream.c:813);writev (libc.so.6)", "sockets"),
        (f"{PYTHON};{APPEND};os_pwritev (libpython3.11.so.1.0);pwritev64v2 (libc.so.6)", "files"),
        (f"{PYTHON};0x7f63038a548e (korvet_fast/_native.abi3.so);0x7f6304f8bb75 (libc.so.6)", "native"),
        (f"{PYTHON};malloc (libc.so.6)", "net"),
        (f"{PYTHON};{APPEND}", "store"),
        ("0x7f640185cb46 ([vdso])", "sockets"),
        ("uv__read (stream.c:1063);RelayLoop._stored (benchmarks/peers/relay_loop.py:190)", "other"),
    ],
)
def test_a_stack_counts_for_what_is_innermost(frames: str, place: str) -> None:
    assert divide([f"{LOOP};{frames} 7"]) == {place: 1.0}


def test_shares_are_of_the_loops_time_alone() -> None:
    other = "thread (13): uvloop_0;_worker (concurrent/futures/thread.py:81) 900"
    unknown = "thread (12): MainThread;main (serve) 1"
    assert divide([f"{LOOP};{PYTHON} 3", other, unknown]) == {"net": 0.75, "other": 0.25}
