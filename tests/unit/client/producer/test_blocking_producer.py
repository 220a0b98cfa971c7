"""The producer for programs without asyncio: many threads, forks, its own thread, and every way to end it."""

import gc
import multiprocessing
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from broker_process import BrokerProcess
from korvet_fast.client import Producer
from korvet_fast.client.producer import BufferFull, DeliveryFailed, Expired, ProducerClosed, RecordMetadata
from redis_server import free_port

_numbers = count()
Run = Callable[[Callable[[], Awaitable[Any]]], Any]
PATIENCE = 60.0  # seconds; whoever has not come back by then hangs
THREADS = 8
CHILDREN = multiprocessing.get_context("fork")
FOREVER = 1_000_000_000  # ms


@pytest.fixture
def topic() -> str:
    return f"blocking-{next(_numbers)}"


@pytest.fixture
def nowhere() -> str:
    """An address at which nobody listens."""
    return f"127.0.0.1:{free_port()}"


@contextmanager
def ended(p: Producer) -> Iterator[Producer]:
    try:
        yield p
    finally:
        p.abort()


def run_threads(work: Callable[[int], None], count: int = THREADS) -> None:
    """Run `work` in so many threads at once, and see that all come back."""
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 raised below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not [thread for thread in threads if thread.is_alive()], "a call hangs"
    if errors:
        raise errors[0]


def test_each_threads_messages_keep_their_order(run: Run, broker: BrokerProcess, topic: str) -> None:
    results: list[list[Future[RecordMetadata]]] = [[] for _ in range(THREADS)]
    with Producer(broker.bootstrap) as p:

        def work(number: int) -> None:
            for at in range(300):
                results[number].append(p.send(topic, b"%d" % at, partition=0))
                if at % 100 == 50:
                    p.flush()
                    assert all(each.done() for each in results[number])

        run_threads(work)
    offsets = [[each.result(PATIENCE).offset for each in mine] for mine in results]
    assert [sorted(mine) for mine in offsets] == offsets
    assert sorted(offset for mine in offsets for offset in mine) == list(range(300 * THREADS))


def test_whoever_sends_while_it_is_closed_is_told(run: Run, broker: BrokerProcess, topic: str) -> None:
    p = Producer(broker.bootstrap)
    sent = threading.Event()

    def work(number: int) -> None:
        if number < 2:
            sent.wait(PATIENCE)
            p.close()
            return
        results = []
        with pytest.raises(ProducerClosed):
            while True:
                results.append(p.send(topic, b"x"))
                sent.set()
        for each in results:
            assert each.result(PATIENCE).offset >= 0, "what was taken before is delivered"

    run_threads(work)


def after_close(p: Producer) -> dict[str, Callable[[], Any]]:
    return {
        "send": lambda: p.send("t", b"x"),
        "send_many": lambda: p.send_many("t", None, [b"x"]),
        "flush": p.flush,
        "metrics": p.metrics,
    }


def test_after_close_every_call_says_so(run: Run, nowhere: str) -> None:
    p = Producer(nowhere)
    p.close()
    for call in after_close(p).values():
        with pytest.raises(ProducerClosed, match="the producer is closed"):
            call()
    p.close()
    p.abort()


@pytest.mark.parametrize("call", ["send", "send_many", "flush", "metrics", "close", "abort", "with"])
def test_a_forked_process_is_told_to_make_its_own(run: Run, nowhere: str, call: str) -> None:
    with ended(Producer(nowhere)) as p:
        result = p.send("t", b"x")
        told, tell = CHILDREN.Pipe(duplex=False)

        def work() -> None:
            calls = after_close(p) | {
                "send": lambda: p.send("t", b"x").result(),
                "close": p.close,
                "abort": p.abort,
                "with": lambda: p.__exit__(None, None, None),
            }
            try:
                calls[call]()
            except RuntimeError as error:
                tell.send(f"RuntimeError: {error}")

        child = CHILDREN.Process(target=work)
        child.start()
        words = told.recv() if told.poll(PATIENCE) else "it hangs"
        child.kill()
        child.join()
        child.close()
        told.close()
        tell.close()
        assert words.startswith("RuntimeError: this Producer is for the process that made it")
        assert not result.done(), "the other process goes on"


@pytest.mark.parametrize("call", ["send_many", "flush", "metrics", "close", "abort"])
def test_a_callback_may_not_wait_for_its_own_thread(run: Run, nowhere: str, call: str) -> None:
    raised: list[BaseException] = []
    called = threading.Event()
    with ended(Producer(nowhere, delivery_timeout_ms=50)) as p:

        def callback(_: Future[RecordMetadata]) -> None:
            try:
                {**after_close(p), "close": p.close, "abort": p.abort}[call]()
            except BaseException as error:  # noqa: BLE001 looked at below
                raised.append(error)
            called.set()

        p.send("t", b"x").add_done_callback(callback)
        assert called.wait(PATIENCE), "the callback hangs"
        with pytest.raises(RuntimeError, match="may not wait for it, on its own thread"):
            raise raised[0]


def test_a_callback_may_send(run: Run, nowhere: str) -> None:
    again: list[Any] = []
    called = threading.Event()
    with ended(Producer(nowhere, delivery_timeout_ms=50)) as p:

        def callback(_: Future[RecordMetadata]) -> None:
            try:
                again.extend(p.send("t", b"again") for _ in range(2000))
            except DeliveryFailed as error:
                again.append(error)
            called.set()

        p.send("t", b"x").add_done_callback(callback)
        assert called.wait(PATIENCE), "the callback hangs"
    assert isinstance(again.pop(), BufferFull), "the thread cannot wait for itself"
    assert len(again) == 1000
    assert wait_for(again, PATIENCE).not_done == set()


def test_abort_does_not_wait_for_a_close(run: Run, nowhere: str) -> None:
    p = Producer(nowhere, delivery_timeout_ms=FOREVER)
    result = p.send("t", b"x")
    closing = threading.Thread(target=p.close, daemon=True)
    closing.start()
    while not p._producer._ledger.closing:
        pass
    run_threads(lambda _: p.abort(), 2)
    closing.join(PATIENCE)
    assert not closing.is_alive()
    with pytest.raises(ProducerClosed):
        result.result(PATIENCE)


SMALL = {"buffer_memory": 3000, "max_request_size": 700}  # room for three messages of 100 bytes


def test_all_that_wait_for_memory_wait_equally_long(run: Run, nowhere: str) -> None:
    """The result of each is `BufferFull` after `max.block.ms`, however many wait before it."""
    settings = SMALL | {"max_block_ms": 1000, "delivery_timeout_ms": 20_000}
    with ended(Producer(nowhere, **settings)) as p:
        results = [p.send("t", b"x" * 100) for _ in range(40)]
        failed = wait_for(results[10:], PATIENCE).done
        assert {type(each.exception()) for each in failed} == {BufferFull}
        assert not any(each.done() for each in results[:2])


@pytest.mark.parametrize("end", ["flush", "close", "with"])
def test_what_waits_for_memory_is_delivered_before_the_end(
    run: Run, broker: BrokerProcess, topic: str, end: str
) -> None:
    """`send` has returned: then `flush` waits for the message, and `close` delivers it."""
    p = Producer(broker.bootstrap, **SMALL)
    with ended(p):
        results = [p.send(topic, b"x" * 100, partition=0) for _ in range(200)]
        {"flush": p.flush, "close": p.close, "with": lambda: p.__exit__(None, None, None)}[end]()
        assert [each.done() for each in results] == [True] * 200
        assert [each.result().offset for each in results] == list(range(200))


def test_close_ends_in_time_whatever_waits_for_memory(run: Run, nowhere: str) -> None:
    p = Producer(nowhere, **SMALL, max_block_ms=FOREVER, delivery_timeout_ms=FOREVER)
    results = [p.send("t", b"x" * 100) for _ in range(40)]
    run_threads(lambda _: p.close(0.5), 2)
    assert {type(each.exception(PATIENCE)) for each in results} == {ProducerClosed}


def test_topics_that_were_named_once_are_not_remembered(run: Run, nowhere: str) -> None:
    """A lock of each topic was kept for as long as the producer."""
    with ended(Producer(nowhere, delivery_timeout_ms=50)) as p:
        assert not wait_for([p.send(f"topic-{number}", b"x") for number in range(100)], PATIENCE).not_done
        p.flush()
        gc.collect()
        assert len(p._turns) == 0


class Exits:
    """Raises `error` on the producer's thread, from a callback of a result or as an interceptor."""

    def __init__(self, error: type[BaseException], place: str) -> None:
        self._error = error
        self._place = place

    def _raise_at(self, place: str) -> None:
        if place == self._place and threading.current_thread().name == "korvet-fast producer":
            raise self._error

    def __call__(self, _: Any) -> None:
        self._raise_at("callback")

    def on_send(self, _: Any) -> None:
        self._raise_at("on_send")

    def on_acknowledgement(self, _metadata: Any, _error: Any) -> None:
        self._raise_at("on_acknowledgement")


@pytest.mark.parametrize("end", ["close", "abort"])
@pytest.mark.parametrize("place", ["callback", "on_send", "on_acknowledgement"])
@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_what_ends_a_program_does_not_end_the_producers_thread(
    run: Run, nowhere: str, caplog: pytest.LogCaptureFixture, error: type[BaseException], place: str, end: str
) -> None:
    exits = Exits(error, place)
    p = Producer(nowhere, delivery_timeout_ms=50, interceptor_classes=[exits])

    def work(_: int) -> None:
        for _ in range(2):
            results = [p.send(f"topic-{number}", b"x") for number in range(5)]
            for result in results:
                result.add_done_callback(exits)
            assert {type(each.exception(PATIENCE)) for each in results} == {Expired}
        p.flush()
        assert p.metrics().failed == 10
        last = p.send("t", b"x")
        last.add_done_callback(exits)
        {"close": p.close, "abort": p.abort}[end]()
        assert last.done()

    run_threads(work, 1)
    assert f"{error.__name__}\n" in caplog.text


@pytest.mark.parametrize("end", ["close", "abort"])
def test_a_signals_handler_may_end_it_in_the_middle_of_a_call(
    run: Run, nowhere: str, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """The handler runs on the thread that it interrupts: it waited for a lock which that thread held."""
    p = Producer(nowhere)
    hand_over = p._loop.call_soon_threadsafe

    def interrupted(*call: Any) -> Any:
        monkeypatch.setattr(p._loop, "call_soon_threadsafe", hand_over)
        getattr(p, end)()
        return hand_over(*call)

    def work(_: int) -> None:
        with pytest.raises(ProducerClosed):
            p.send("t", b"x")

    monkeypatch.setattr(p._loop, "call_soon_threadsafe", interrupted)
    run_threads(work, 1)


def test_what_is_cancelled_at_once_leaves_room_for_others(run: Run, nowhere: str) -> None:
    """Cancelled before the thread has begun with it: `send` counts those that it has not, and waits when many are."""
    with ended(Producer(nowhere, delivery_timeout_ms=5000)) as p:

        def work(_: int) -> None:
            for _ in range(20):
                p._loop.call_soon_threadsafe(time.sleep, 0.02)  # the thread has begun with none of the next ones
                results = [p.send("t", b"x") for _ in range(100)]
                assert all(each.cancel() for each in results)
                assert wait_for(results, PATIENCE).not_done == set()

        run_threads(work, 1)
        assert isinstance(p.send("t", b"x").exception(PATIENCE), Expired)


def test_a_failed_result_goes_with_its_last_reference(run: Run, nowhere: str) -> None:
    """The error's traceback names the frames that it came through: none of them may name the result."""
    with ended(Producer(nowhere, delivery_timeout_ms=50)) as p:
        results = [p.send("t", b"x") for _ in range(10)]
        assert {type(each.exception(PATIENCE)) for each in results} == {Expired}
        p.flush()
        kept = [weakref.ref(each) for each in results]
        gc.disable()
        try:
            del results
            assert [each() for each in kept] == [None] * 10
        finally:
            gc.enable()
