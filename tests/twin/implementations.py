"""The two implementations of the codec's contract, and what a call to one of them comes to."""

import math
from array import array
from collections.abc import Callable
from types import ModuleType
from typing import Any

import korvet_fast._native as native
import korvet_reference as reference
from korvet_fast.errors import CodecError

IMPLEMENTATIONS: dict[str, ModuleType] = {"native": native, "reference": reference}

BATCH_FIELDS = [*reference.Batch.__dataclass_fields__, "producer_sequence"]

Outcome = tuple[str, Any]  # ("value", plain value) or ("error", code)


def outcome(call: Callable[[ModuleType], Any], implementation: ModuleType) -> Outcome:
    """The outcome of `call` there. A CodecError is an outcome; any other exception is a bug and passes through."""
    try:
        return ("value", plain(call(implementation)))
    except CodecError as error:
        return ("error", error.code)


def agree(call: Callable[[ModuleType], Any]) -> Outcome:
    """The outcome of `call`, which must be the same in both implementations."""
    ours, theirs = outcome(call, native), outcome(call, reference)
    assert ours == theirs
    return ours


def plain(value: Any) -> Any:
    """A value in a form that can be compared whatever implementation it comes from. Types stay distinct."""
    match type(value).__name__:
        case "Batch":
            return {name: plain(getattr(value, name)) for name in BATCH_FIELDS}
        case "Column":
            view = memoryview(value)
            return (view.format, view.tolist())
        case "ReplyError":
            return ("ReplyError", value.message)
        case "dict":
            return {key: plain(item) for key, item in value.items()}
        case "list" | "tuple":
            return (type(value).__name__, [plain(item) for item in value])
        case "float" if math.isnan(value):
            return "not a number"
        case "bool" | "float" as name:  # equal to ints otherwise
            return (name, value)
        case "memoryview":
            return ("memoryview", bytes(value))
        case _:
            return value


def column(typecode: str, numbers: list[int]) -> "array[int]":
    """Numbers as callers hand them in."""
    return array(typecode, numbers)
