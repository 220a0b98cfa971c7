"""Interceptors: objects of the caller's that see each message once when it is sent, and once when it has ended."""

import logging
from asyncio import CancelledError, get_running_loop
from collections.abc import Callable, Sequence
from typing import Any

from korvet_fast.client.producer.message import DeliveryFailed, Message, RecordMetadata

_log = logging.getLogger(__name__)


class Interceptors:
    """Calls `on_send(message)`, which may return another message, and `on_acknowledgement(metadata, error)`.

    Retries do not call them again. What one raises, or returns in place of a message, is logged, and changes nothing
    for the others or for the message; `SystemExit` ends the event loop in its next turn, when the stages are in order
    and all others have been told. A message that `on_acknowledgement` sends itself, and that is refused, is told
    only by what `send` raises: else one that always sends again would never end.
    """

    def __init__(self, interceptors: Sequence[Any], check: Callable[[Message], Message]) -> None:
        """`check`: raises for what is no message that can be sent."""
        self._check = check
        self._senders = [each.on_send for each in interceptors if hasattr(each, "on_send")]
        self._listeners = [each.on_acknowledgement for each in interceptors if hasattr(each, "on_acknowledgement")]
        self._telling = False

    def __bool__(self) -> bool:
        return bool(self._senders or self._listeners)

    def send(self, message: Message) -> Message:
        """Return the message to send in place of the given one."""
        for call in self._senders:
            try:
                found = call(message)
                message = message if found is None else self._check(found)
            except (SystemExit, KeyboardInterrupt) as error:
                _raise_soon(error)
            except (Exception, CancelledError):  # noqa: BLE001 code of the caller's, which may raise anything
                _log.exception("an interceptor's on_send failed; the message is sent as it was")
        return message

    def end(self, metadata: RecordMetadata | None, error: DeliveryFailed | None) -> None:
        """A message has ended, in one way or the other."""
        if self._telling:
            return
        self._telling = True
        try:
            for call in self._listeners:
                self._tell(call, metadata, error)
        finally:
            self._telling = False

    def _tell(
        self,
        call: Callable[[RecordMetadata | None, DeliveryFailed | None], None],
        metadata: RecordMetadata | None,
        error: DeliveryFailed | None,
    ) -> None:
        try:
            call(metadata, error)
        except (SystemExit, KeyboardInterrupt) as ends:
            _raise_soon(ends)
        except (Exception, CancelledError):  # noqa: BLE001 code of the caller's, which may raise anything
            _log.exception("an interceptor's on_acknowledgement failed")


def _raise_soon(error: BaseException) -> None:
    def throw() -> None:
        raise error

    get_running_loop().call_soon(throw)
