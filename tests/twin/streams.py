"""Replies to XRANGE: of our own entries, of other programs', and of neither."""

import json
from typing import Any

from hypothesis import strategies as st

from korvet_reference.resp import Replies, encode_commands
from korvet_reference.resp import parse_replies as parse

Entry = list[bytes]  # an id, then names and values of fields in turn


def write_reply(entries: list[Entry]) -> bytes:
    """XRANGE's answer where these entries are."""
    written = [b"*2\r\n" + encode_commands([entry])[len(b"*%d\r\n" % len(entry)) :] for entry in entries]
    heads = [len(b"$%d\r\n%b\r\n" % (len(entry[0]), entry[0])) + 4 for entry in entries]
    rests = [
        one[:head] + b"*%d\r\n" % (len(entry) - 1) + one[head:]
        for one, head, entry in zip(written, heads, entries, strict=True)
    ]
    return b"*%d\r\n" % len(entries) + b"".join(rests)


def stored(packed: bytes, head: int = 2) -> list[Entry]:
    """The entries that these XADD commands make; `head`: words in front of the id."""
    return [command[head:] for command in parse(packed)]


def parsed(reply: bytes) -> Any:
    return Replies(1 << 30).feed(reply)[0]


texts = st.text(max_size=5)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
objects = st.builds(
    lambda value, ascii_only, indent: json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode(
        errors="surrogatepass"
    ),
    st.one_of(st.dictionaries(texts, json_values, max_size=4), json_values),
    st.booleans(),
    st.sampled_from([None, 1]),
)
json_noise = st.text('{}[]",:\\u0dd8ntrue1.-+eE \n', max_size=24).map(lambda text: b"{" + text.encode())

names = st.one_of(
    st.sampled_from([b"key", b"value", b"timestamp", b"headers", b"batch", b"header.a", b"null.header.a", b"header."]),
    st.binary(max_size=5),
)
values = st.one_of(
    st.binary(max_size=12),
    st.integers(-(1 << 64), 1 << 64).map(b"%d".__mod__),
    st.just(b""),
    objects,
    json_noise,
)
fields = st.lists(st.tuples(names, values), max_size=6).map(lambda pairs: [word for pair in pairs for word in pair])
numbers = st.one_of(st.integers(0, 5), st.integers(1020, 1030), st.integers(0, 1 << 53), st.integers(0, (1 << 64) - 1))
ids = st.lists(st.tuples(numbers, numbers), max_size=6, unique=True).map(sorted)


@st.composite
def foreign(draw: st.DrawFn) -> list[Entry]:
    """Entries that any program may have written."""
    return [[b"%d-%d" % one, *draw(fields)] for one in draw(ids)]
