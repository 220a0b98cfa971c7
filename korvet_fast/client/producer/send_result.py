"""The result of the blocking producer's `send`."""

from concurrent.futures import Future

from korvet_fast.client.producer.message import DeliveryFailed, RecordMetadata


class SendResult(Future[RecordMetadata]):
    """A future that notes when its failure is read: the log tells those that nobody reads."""

    def result(self, timeout: float | None = None) -> RecordMetadata:
        try:
            return super().result(timeout)
        except DeliveryFailed as error:
            _note_read(error)
            raise

    def exception(self, timeout: float | None = None) -> BaseException | None:
        error = super().exception(timeout)
        if isinstance(error, DeliveryFailed):
            _note_read(error)
        return error


def _note_read(error: DeliveryFailed) -> None:
    on_read, error.on_read = error.on_read, None
    if on_read is not None:
        on_read()
