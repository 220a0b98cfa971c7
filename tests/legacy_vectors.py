"""Section 12's exchanges with the original 0.7.2 broker: what was sent to it, and its literal answers."""

from typing import NamedTuple

HELLO = bytes.fromhex("0000000b01003610a68668656c6c6f")
WORLD = bytes.fromhex("0000000b01003a771143776f726c64")
SET = HELLO + WORLD
HELLO_0 = bytes.fromhex("0000000a003610a68668656c6c6f")
EMPTY_0 = bytes.fromhex("000000050000000000")
EMPTY_1 = bytes.fromhex("00000006010000000000")
GZIP = bytes.fromhex(
    "000000350101ef8d2faf1f8b08000000000002ff636060e06664301358d696919a9393cf00e65a950b3a97e717e5a40000a5d2eb831e000000"
)
SNAPPY = bytes.fromhex(
    "0000003a0102ffe5854082534e41505059000000000100000001000000201e740000000b01003610a68668656c6c6f0000000b01003a77"
    "1143776f726c64"
)


class Exchange(NamedTuple):
    """A request, and its answer; nothing for a produce."""

    name: str
    sent: bytes
    answer: bytes


def _exchange(name: str, sent: str, answer: str = "") -> Exchange:
    return Exchange(name, bytes.fromhex(sent), bytes.fromhex(answer))


_TEST = "0004 74657374 "
_NOPE = "0004 6e6f7065 "
_WHOLE = "00100000"

EXCHANGES = (
    _exchange(
        "1 produce hello and world",
        "0000002e 0000" + _TEST + "00000000 0000001e 0000000b01003610a68668656c6c6f 0000000b01003a771143776f726c64",
    ),
    _exchange(
        "2 fetch from the start",
        "00000018 0001" + _TEST + "00000000 0000000000000000" + _WHOLE,
        "00000020 0000 0000000b01003610a68668656c6c6f 0000000b01003a771143776f726c64",
    ),
    _exchange(
        "3 fetch that ends inside the second message",
        "00000018 0001" + _TEST + "00000000 0000000000000000 00000014",
        "00000016 0000 0000000b01003610a68668656c6c6f 0000000b01",
    ),
    _exchange(
        "4 fetch at the end",
        "00000018 0001" + _TEST + "00000000 000000000000001e" + _WHOLE,
        "00000002 0000",
    ),
    _exchange(
        "5 fetch past the end",
        "00000018 0001" + _TEST + "00000000 000000000000001f" + _WHOLE,
        "00000002 0001",
    ),
    _exchange(
        "6 fetch from partition 9 of two",
        "00000018 0001" + _TEST + "00000009 0000000000000000" + _WHOLE,
        "00000002 0003",
    ),
    _exchange("7 fetch a/b", "00000017 0001 0003 612f62 00000000 0000000000000000" + _WHOLE, "00000002 ffff"),
    _exchange(
        "8 fetch from a topic that there is not",
        "00000018 0001" + _NOPE + "00000000 00000000000003e7" + _WHOLE,
        "00000002 0000",
    ),
    _exchange(
        "9 multifetch",
        "00000046 0002 0003"
        + (_TEST + "00000000 000000000000000f" + _WHOLE)
        + (_TEST + "00000000 000000000000001f" + _WHOLE)
        + (_NOPE + "00000000 0000000000000000" + _WHOLE),
        "00000023 0000 00000011 0000 0000000b01003a771143776f726c64 00000002 0001 00000002 0000",
    ),
    _exchange(
        "10 offsets from the end",
        "00000018 0004" + _TEST + "00000000 ffffffffffffffff 0000000a",
        "00000016 0000 00000002 000000000000001e 0000000000000000",
    ),
    _exchange(
        "11 offsets from the start",
        "00000018 0004" + _TEST + "00000000 fffffffffffffffe 0000000a",
        "0000000e 0000 00000001 0000000000000000",
    ),
    _exchange(
        "12 offsets of a topic that there is not",
        "00000018 0004" + _NOPE + "00000000 ffffffffffffffff 00000001",
        "0000000e 0000 00000001 0000000000000000",
    ),
    _exchange(
        "13 its offsets at a time",
        "00000018 0004" + _NOPE + "00000000 0000013a52453c00 00000001",
        "00000006 0000 00000000",
    ),
    _exchange(
        "14 multiproduce",
        "0000003a 0003 0002"
        + (_TEST + "00000000 0000000d 0000000901008c736521666f6f")
        + "0005 7465737432 00000001 0000000c 000000080076ff8caa626172",
    ),
    _exchange(
        "15 fetch what it wrote",
        "00000019 0001 0005 7465737432 00000001 0000000000000000" + _WHOLE,
        "0000000e 0000 000000080076ff8caa626172",
    ),
    _exchange("16 produce a gzip wrapper", "0000004b 0000 0006 74657374677a 00000000 00000039" + GZIP.hex()),
    _exchange(
        "16 fetch it",
        "0000001a 0001 0006 74657374677a 00000000 0000000000000000" + _WHOLE,
        "0000003b 0000" + GZIP.hex(),
    ),
    _exchange(
        "16 its end",
        "0000001a 0004 0006 74657374677a 00000000 ffffffffffffffff 00000001",
        "0000000e 0000 00000001 0000000000000039",
    ),
)
