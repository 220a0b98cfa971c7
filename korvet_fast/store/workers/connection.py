"""A connection between two workers: either side asks questions, in any number, and answers those of the other."""

import asyncio
import logging
from asyncio import Future, StreamReader, StreamWriter, Task
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

from korvet_fast.errors import StoreError
from korvet_fast.store.workers.messages import HEAD, Fields, Message, Verb, pack_message, read_length, unpack_message

_PART = 1 << 20  # bytes of an answer's fields; with more it is told in parts

_logger = logging.getLogger(__name__)

Answer: TypeAlias = Callable[[Verb, Fields], Awaitable[Fields]]


class ConnectionEnded(Exception):
    """The connection ended before the answer came.

    `undone`: the other side said that it has not done what was asked.
    """

    def __init__(self, undone: bool) -> None:
        super().__init__(undone)
        self.undone = undone


@dataclass(slots=True)
class _Asked:
    future: "Future[Fields]"
    told: list[bytes | None] = field(default_factory=list)  # the parts of the answer so far


class Connection:
    """One end. Call `run` in a task, and `ask` while it runs.

    `answer` answers what is asked here; it may raise `StoreError`.
    """

    def __init__(self, reader: StreamReader, writer: StreamWriter, answer: Answer) -> None:
        self._reader = reader
        self._writer = writer
        self._answer = answer
        self._numbers = count(1)
        self._questions: dict[int, _Asked] = {}
        self._answering: set[Task[None]] = set()
        self._finishing = False  # what is asked from now on is not done
        self._undone = False  # the other side said so
        self._ended = False

    async def ask(self, verb: Verb, *fields: bytes | None) -> Fields:
        """Ask, and wait for the answer.

        Raises `StoreError` if the other side fails to answer, or if the question is too large; `ConnectionEnded`.
        """
        if self._finishing or not self._can_write():
            raise ConnectionEnded(True)
        number = next(self._numbers) & 0xFFFFFFFF
        try:
            frame = pack_message(Message(verb, number, fields))
        except ValueError as error:
            raise StoreError(f"the registry's worker cannot be asked: {error}") from None
        question = self._questions[number] = _Asked(asyncio.get_running_loop().create_future())
        self._writer.write(frame)
        try:
            return await question.future
        finally:
            self._questions.pop(number, None)

    async def run(self) -> None:
        """Read until the connection ends."""
        try:
            while True:
                length = read_length(await self._reader.readexactly(HEAD.size))
                self._take(unpack_message(await self._reader.readexactly(length)))
        except (asyncio.IncompleteReadError, OSError):
            pass  # the other worker has ended
        except ValueError as error:
            _logger.error("another worker sent what is no message: %s", error)
        finally:
            self.close()

    def _take(self, message: Message) -> None:
        verb, number, fields = message
        if verb in (Verb.ANSWER, Verb.PART, Verb.FAILURE):
            self._take_answer(verb, number, fields)
        elif verb is Verb.GOODBYE:
            self._undone = True
            self.close()
        elif not self._finishing:
            task = asyncio.get_running_loop().create_task(self._respond(verb, number, fields))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    def _take_answer(self, verb: Verb, number: int, fields: Fields) -> None:
        question = self._questions.get(number)
        if question is None or question.future.done():
            return  # whoever asked was cancelled
        if verb is Verb.FAILURE:
            text = fields[0] if fields else None
            question.future.set_exception(StoreError((text or b"").decode(errors="replace"), logged=True))
            return
        question.told += fields
        if verb is Verb.ANSWER:
            question.future.set_result(question.told)

    async def _respond(self, verb: Verb, number: int, fields: Fields) -> None:
        try:
            answer = await self._answer(verb, fields)
            frames = [pack_message(part) for part in _divide(number, answer)]
        except StoreError as error:
            frames = [pack_message(Message(Verb.FAILURE, number, [error.detail.encode()]))]
        except ValueError as error:
            frames = [pack_message(Message(Verb.FAILURE, number, [str(error).encode()]))]
        except Exception as error:  # a bug of ours: whoever asks must not wait for ever
            _logger.error("%s could not be answered: %s", verb.name, error, exc_info=error)
            frames = [pack_message(Message(Verb.FAILURE, number, [f"{verb.name}: {error!r}".encode()]))]
        if self._can_write():
            self._writer.writelines(frames)

    async def finish(self, within: float) -> None:
        """End in good order: what is being done is answered, and the other side told that the rest is not done.

        What is not answered `within` so many seconds has no known outcome: the connection ends without a word. Nobody
        waits for what was asked here: the other side may have to ask something itself before it can answer.

        The other side closes the connection then, and `run` ends. Were this side the first to close, the other one
        could not read the last messages any more: it may be writing its next question.
        """
        self._finishing = True
        self._end_questions()
        if self._answering and (await asyncio.wait(self._answering, timeout=within))[1]:
            self.close()
        elif self._can_write():
            self._writer.write(pack_message(Message(Verb.GOODBYE, 0)))

    def _can_write(self) -> bool:
        """Not where the other end has gone and `run` has not been told yet: uvloop's transports raise then."""
        return not self._ended and not self._writer.is_closing()

    def close(self) -> None:
        """End at once. Whoever waits for an answer gets `ConnectionEnded`."""
        if not self._ended:
            self._ended = True
            self._writer.close()  # what was written before is sent
        self._end_questions()

    def _end_questions(self) -> None:
        for question in self._questions.values():
            if not question.future.done():
                question.future.set_exception(ConnectionEnded(self._undone))
                question.future.exception()  # its owner may have been cancelled


def _divide(number: int, fields: Fields) -> list[Message]:
    """The answer as messages: parts of at most a MiB, or of one larger field, and what completes them."""
    messages = []
    first = size = 0
    for position, each in enumerate(fields):
        size += len(each or b"")
        if size > _PART and position > first:
            messages.append(Message(Verb.PART, number, fields[first:position]))
            first, size = position, len(each or b"")
    return [*messages, Message(Verb.ANSWER, number, fields[first:])]
