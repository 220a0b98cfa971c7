"""What is in records, as text that does nothing; numbers as people read them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.wire.http.page.show import Cell, show_bytes, show_line, show_number, show_rate, show_time, show_value

MB = 1 << 20


@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode(errors="replace")))
def test_any_value_is_shown_without_anything_that_acts(data: bytes) -> None:
    cell = show_value(data)
    assert all(letter.isprintable() or letter == "\n" for letter in cell.text)
    assert cell.text or not data.strip()
    assert not cell.note or len(data) > 256


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=10,
    ).filter(lambda value: isinstance(value, dict | list))
)
def test_json_stays_the_same_json(value: object) -> None:
    cell = show_value(json.dumps(value).encode(), 1 << 30)
    assert cell.kind == "json"
    assert json.dumps(json.loads(cell.text)) == json.dumps(value)


def test_json_keeps_numbers_and_members_as_they_were_written() -> None:
    cell = show_value(b'{"a":1.10,"a":1e400,"b":[],"c":{},"d":[1,{"e":"x,{:"}]}')
    lines = ["{", '  "a": 1.10,', '  "a": 1e400,', '  "b": [],', '  "c": {},', '  "d": [', "    1,", "    {"]
    lines += ['      "e": "x,{:"', "    }", "  ]", "}"]
    assert cell == Cell("json", "\n".join(lines))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (None, "null"),
        (b"", "empty"),
        (b"{not json}", "text"),
        (b"[" * 30_000 + b"]" * 30_000, "text"),
        (b"17", "text"),
        (b"\xff\x00", "binary"),
        ("gr\u00fc\u00dfe".encode(), "text"),
    ],
)
def test_kinds(data: bytes | None, kind: str) -> None:
    assert show_value(data).kind == kind


def test_a_long_value_is_cut_with_a_note() -> None:
    cell = show_value(b"x" * MB)
    assert cell == Cell("text", "x" * 4096, "1,048,576 bytes, the first 4,096 characters are shown")
    assert show_value(b"\xff" * MB).note == "1,048,576 bytes, the first 256 are shown"
    assert show_value("\u00e9".encode() * MB, 10).text == "\u00e9" * 10  # a letter is cut in two at 64 KiB
    assert show_value(b"\x1b" * MB).text == (r"\x1b" * 4096)[:4096]
    deep = show_value(b"[" * 900 + b"1," * 20_000 + b"1" + b"]" * 900)
    assert (deep.kind, len(deep.text)) == ("json", 4096)


def test_controls_and_marks_of_direction_are_written_out() -> None:
    assert show_value(b"\x1b[31mred\x00\nnext").text == r"\x1b[31mred\x00" + "\nnext"
    assert show_line("a\u202eb\nc") == r"a\u202eb\nc"
    assert show_line("n" * 1000) == "n" * 200 + "\u2026"


def test_numbers_sizes_rates_and_times() -> None:
    dash = "\u2013"
    assert [show_number(each) for each in (None, -1, 0, 1234567)] == [dash, dash, "0", "1,234,567"]
    assert [show_bytes(each) for each in (None, 0, 1023, 1536, 200 << 20, 1 << 70)] == [
        dash, "0 B", "1,023 B", "1.5 KiB", "200 MiB", "1,048,576 PiB"
    ]  # fmt: skip
    assert [show_rate(each) for each in (None, 0, 0.25, 1234.5)] == [dash, "0", "0.2", "1,234"]
    assert show_time(1_700_000_000_123) == "2023-11-14 22:13:20.123"
    assert [show_time(each) for each in (-1, 1 << 62)] == ["1969-12-31 23:59:59.999", f"{1 << 62} ms"]
