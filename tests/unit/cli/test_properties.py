"""Java's .properties files: each rule of java.util.Properties.load, and files that are none."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.cli.properties import read_properties
from korvet_fast.errors import SettingError


def read(tmp_path: Path, content: str) -> dict[str, str]:
    file = tmp_path / "client.properties"
    file.write_bytes(content.encode("latin-1"))
    return read_properties(file)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", {}),
        ("a=1\nb:2\nc 3\nd\n", {"a": "1", "b": "2", "c": "3", "d": ""}),
        ("  a \t=  1 \r\nb = : 2\rc==3", {"a": "1 ", "b": ": 2", "c": "=3"}),
        ("# a=1\n ! b=2\n\n \t\nc=#3\n", {"c": "#3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=one,\\\n    two,\\\n\tthree\nb=4", {"a": "one,two,three", "b": "4"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a=\\\n# no comment", {"a": "# no comment"}),
        ("\\\na=1", {"a": "1"}),
        ("a\\=b\\:c\\ d=\\t\\n\\r\\f\\x\\\\", {"a=b:c d": "\t\n\r\fx\\"}),
        ("a=\\u00e9\\u4e2d \\\\u", {"a": "é中 \\u"}),
        ("a=é", {"a": "é"}),
        (
            'sasl.jaas.config=org.X required \\\n  username="ann" \\\n  password="p=1";',
            {"sasl.jaas.config": 'org.X required username="ann" password="p=1";'},
        ),
    ],
)
def test_values(tmp_path: Path, content: str, expected: dict[str, str]) -> None:
    assert read(tmp_path, content) == expected


def test_what_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"b has a \\u without four hexadecimal digits"):
        read(tmp_path, "a=1\nb=\\u12g4")
    with pytest.raises(SettingError, match="more than 1,048,576 bytes"):
        read(tmp_path, "a" * 1_048_577)
    with pytest.raises(SettingError, match="cannot be read: No such file"):
        read_properties(tmp_path / "missing")


@given(
    pairs=st.dictionaries(
        st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=8),
        st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=8),
    )
)
def test_what_is_escaped_comes_back(tmp_path_factory: pytest.TempPathFactory, pairs: dict[str, str]) -> None:
    def escape(text: str) -> str:
        return "".join(f"\\u{ord(each):04x}" for each in text)

    lines = "\n".join(f"{escape(name)}={escape(value)}" for name, value in pairs.items())
    assert read(tmp_path_factory.mktemp("properties"), lines) == pairs
