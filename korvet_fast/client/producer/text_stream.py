"""A connection of the text protocol: lines go out pipelined, and answers come in their order."""

import asyncio
from collections import deque
from collections.abc import Iterator
from itertools import chain, islice

from korvet_fast.client.producer.broker_producer import ProduceRequest
from korvet_fast.client.producer.produce_stream import ProduceStream
from korvet_fast.client.producer.text_lines import read_answer
from korvet_fast.client.protocol.errors import ClientError, ConnectionLost
from korvet_fast.endpoint import Address


class _Sent:
    """A request on its way. `ids`: of the lines without an answer."""

    def __init__(self, request: ProduceRequest) -> None:
        self.request = request
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.open = sum(batch.count for _, batch in request.batches)
        self.ids: Iterator[int] = chain.from_iterable(range(1, batch.count + 1) for _, batch in request.batches)


class TextStream(ProduceStream):
    """`most`: bytes of an answer. What was answered of a request is in its `rows`, also after a failure."""

    def __init__(self, endpoint: Address, patience: float, most: int) -> None:
        super().__init__(endpoint, patience)
        self._most = most
        self._sent: deque[_Sent] = deque()
        self._rest = b""  # the beginning of a line

    async def produce(self, request: ProduceRequest) -> None:
        sent = _Sent(request)
        self._sent.append(sent)
        self._write(batch.data for _, batch in request.batches)
        try:
            async with asyncio.timeout(self._patience):
                await sent.ended
        except TimeoutError:
            late = ConnectionLost(f"{self.endpoint} did not answer PRODUCE within {self._patience:g} s")
            raise self._fail(late) from None

    def _fail(self, failure: ClientError) -> ClientError:
        first = super()._fail(failure)
        while self._sent:
            ended = self._sent.popleft().ended
            if not ended.done():
                ended.set_exception(first)
                ended.exception()  # whoever waited may be gone: asyncio would log the exception
        return first

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        try:
            self._take(iter(lines), len(lines))
            if len(self._rest) > self._most:
                raise ClientError(f"a line of more than {self._most:,} bytes")
        except ClientError as error:
            self._fail(ClientError(f"{self.endpoint} does not answer as the text protocol does: {error}"))

    def _take(self, lines: Iterator[bytes], count: int) -> None:
        while count:
            if not self._sent:
                raise ClientError("an answer that nobody asked for")
            sent = self._sent[0]
            taken = min(count, sent.open)
            for line, number in zip(islice(lines, taken), sent.ids, strict=False):
                sent.request.rows.append(read_answer(line, number))
            count -= taken
            sent.open -= taken
            if not sent.open:
                del self._sent[0]
                if not sent.ended.done():
                    sent.ended.set_result(None)
