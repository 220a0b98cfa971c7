"""No modules of a Rust crate use each other in a circle, so that each can be read after those it uses."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

RUST = Path(__file__).parents[2] / "rust"
CRATES = sorted(source.parent for source in RUST.glob("*/src"))

_COMMENT = re.compile(r"//.*")
_TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod \w+ \{.*", re.DOTALL)  # at the end of a file, as rustfmt users have it
_USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
_REEXPORT = re.compile(r"^\s*pub(?:\([^)]*\))?\s+use\s", re.MULTILINE)
_PATH = re.compile(r"\b(?:crate|super)(?:::\w+)+")

Module = tuple[str, ...]  # ("schema", "plan"); () is the crate's root


@dataclass
class Source:
    """A file without its comments and tests: what its names stand for, and which of them it only hands on."""

    text: str
    names: dict[str, Module] = field(default_factory=dict)  # a name to the path it was imported from
    handed_on: set[str] = field(default_factory=set)


def expand(tree: str) -> Iterator[tuple[str, str]]:
    """`a::{b, c as d}` as (path, name here): (a::b, b), (a::c, d)."""
    head, brace, rest = tree.strip().partition("{")
    if not brace:
        path, _, name = head.partition(" as ")
        path = path.strip().removesuffix("::self")
        yield path, name.strip() or path.rsplit("::", 1)[-1]
        return
    depth, part = 0, ""
    for letter in rest.rstrip().removesuffix("}") + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if part.strip():
                yield from expand(head.strip() + part.strip())
            part = ""
        else:
            part += letter


class Crate:
    """The modules of a crate, and which of them use which."""

    def __init__(self, root: Path) -> None:
        files = {self._module(file.relative_to(root / "src")): file for file in (root / "src").rglob("*.rs")}
        self.sources = {
            module: Source(_TESTS.sub("", _COMMENT.sub("", file.read_text())))
            for module, file in files.items()
            if "tests" not in module
        }
        for module, source in self.sources.items():
            for use in _USE.finditer(source.text):
                for path, name in expand(use[1]):
                    if (imported := self._absolute(module, path)) is not None:
                        source.names[name] = imported
                        if _REEXPORT.match(use[0]):
                            source.handed_on.add(name)

    @staticmethod
    def _module(file: Path) -> Module:
        parts = file.with_suffix("").parts
        return parts[:-1] if parts[-1] in ("mod", "lib") else parts

    def _absolute(self, module: Module, path: str) -> Module | None:
        """Counted from the crate's root; None for what another crate has."""
        first, *rest = path.split("::")
        base = {"crate": (), "self": module, "super": module[:-1]}.get(first)
        if base is None:
            base = (*module, first)
            if base not in self.sources:
                return None
        while rest and rest[0] == "super":
            base, rest = base[:-1], rest[1:]
        return (*base, *rest)

    def owner(self, path: Module) -> Module:
        """The module in which that of this path is written, followed through all that hand it on."""
        module: Module = ()
        while len(module) < len(path) and path[: len(module) + 1] in self.sources:
            module = path[: len(module) + 1]
        rest = path[len(module) :]
        found = self.sources[module].names.get(rest[0]) if rest else None
        return module if found is None else self.owner((*found, *rest[1:]))

    def uses(self) -> dict[Module, set[Module]]:
        """Every module, and those whose contents it names."""
        return {module: set(self._used(module, source)) - {module} for module, source in self.sources.items()}

    def _used(self, module: Module, source: Source) -> Iterator[Module]:
        text = _USE.sub("", source.text)
        paths = [self._absolute(module, path) for path in _PATH.findall(text)]
        children = {child[-1]: child for child in self.sources if child and child[:-1] == module}
        for name, path in (children | source.names).items():
            if path in self.sources:  # a module: those of its contents that are named
                paths += [(*path, item) for item in re.findall(rf"(?<![\w:]){name}::(\w+)", text)]
            elif name not in source.handed_on:
                paths.append(path)
        return (self.owner(path) for path in paths if path is not None)


def circle(root: Path) -> list[str]:
    """Modules each of which uses the one before it, the last of which is the first; empty if there is no circle."""
    try:
        TopologicalSorter(Crate(root).uses()).prepare()
    except CycleError as error:
        return ["::".join(module) for module in error.args[1]]
    return []


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_modules_use_each_other_in_a_circle(crate: Path) -> None:
    assert circle(crate) == []


def make_crate(place: Path, **files: str) -> Path:
    for name, text in {"lib": "", **files}.items():
        file = place / "src" / f"{name.replace('__', '/')}.rs"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return place


@pytest.mark.parametrize(
    "files",
    [
        {"a": "use crate::b::Two;", "b": "use super::a::{One, Other as Third};"},
        {"a": "use crate::b;\nfn f(_: b::Two) {}", "b": "fn f(_: crate::a::One) {}"},
        {"lib": "pub use a::One;\npub struct Two;\nfn f() { b::g() }", "a": "", "b": "use crate::Two;"},
        {"a__mod": "mod c;\npub use c::One;\npub use b::Two;", "a__b": "use super::One;", "a__c": "use crate::a::Two;"},
        {"a": "use crate::{\n    b::{self, Two},\n};\nfn f() { b::g() }", "b": "use crate::a::{One};"},
    ],
)
def test_a_circle_is_found(tmp_path: Path, files: dict[str, str]) -> None:
    found = circle(make_crate(tmp_path, **files))
    assert len(found) == 3
    assert found[0] == found[-1]


@pytest.mark.parametrize(
    "files",
    [
        {"a__mod": "mod b;\nmod c;\npub use b::One;", "a__b": "", "a__c": "use super::One;"},  # a only hands it on
        {"a": "use crate::b::Two;", "b": "// use crate::a::One;\n#[cfg(test)]\nmod tests {\n use crate::a::One;\n}"},
        {"a": "use crate::b::Two;\nuse std::fmt::Debug;", "b": "use other::a::One;"},
        {"a": "use crate::b::Two;", "b": "", "b__tests": "use crate::a::One;"},
    ],
)
def test_what_is_no_circle_is_not_taken_for_one(tmp_path: Path, files: dict[str, str]) -> None:
    assert circle(make_crate(tmp_path, **files)) == []
