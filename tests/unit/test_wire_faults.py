"""Every fault and every codec error has its Kafka number, and no number is invented."""

import re
from pathlib import Path

import pytest
from kafka import errors as kafka_errors

from korvet_fast.errors import FAULTS, CodecError, KorvetError
from korvet_fast.wire.kafka import faults

CODEC = Path(__file__).parents[2] / "rust" / "codec" / "src" / "error.rs"

# Codes that come from our own tables and values, from whole requests (`Session` hangs up), from Redis, or patterns.
NOT_OF_RECORDS = {"UNSUPPORTED_VERSION", "BAD_SCHEMA", "DUPLICATE_TAG", "BAD_COLUMNS", "BAD_RESP", "BAD_PATTERN"}


def test_every_fault_has_a_number() -> None:
    assert faults.CODES.keys() == FAULTS.keys()
    assert len(set(faults.CODES.values())) == len(faults.CODES)


# Where kafka-python's names are not ours.
SPELLED = {
    "CORRUPT_MESSAGE": "CorruptRecordError",
    "INVALID_CONFIG": "InvalidConfigurationError",
    "INVALID_REPLICA_ASSIGNMENT": "InvalidReplicationAssignmentError",
    "INVALID_TOPIC_EXCEPTION": "InvalidTopicError",
    "MESSAGE_TOO_LARGE": "MessageSizeTooLargeError",
    "NOT_LEADER_OR_FOLLOWER": "NotLeaderForPartitionError",
    "UNKNOWN_SERVER_ERROR": "UnknownError",
}


# Of Kafka 4.0 (KIP-848), which kafka-python does not know.
NEWER = {"INVALID_REGULAR_EXPRESSION": 128}


@pytest.mark.parametrize("name", sorted(faults.CODES.keys() - NEWER))
def test_the_numbers_are_kafkas(name: str) -> None:
    known = kafka_errors.for_code(faults.CODES[name]).__name__
    expected = (
        SPELLED.get(name) or "".join(word.capitalize() for word in name.split("_")).removesuffix("Error") + "Error"
    )
    assert known == expected


def test_the_newest_numbers() -> None:
    assert faults.CODES.items() >= NEWER.items()


def test_every_codec_error_is_placed() -> None:
    known = set(re.findall(r'^    \w+ = "([A-Z0-9_]+)",$', CODEC.read_text(), re.M))
    assert len(known) > 20
    assert faults.CODEC_FAULTS.keys() | NOT_OF_RECORDS == known
    assert not faults.CODEC_FAULTS.keys() & NOT_OF_RECORDS
    assert set(faults.CODEC_FAULTS.values()) <= FAULTS.keys()


@pytest.mark.parametrize("code", sorted(faults.CODEC_FAULTS))
def test_blame_keeps_what_was_wrong(code: str) -> None:
    error = faults.blame_records(CodecError(code, "at byte 7"))
    assert faults.translate(error) == (faults.CODES[faults.CODEC_FAULTS[code]], f"{code}: at byte 7")


def test_translation_has_a_sentence_even_without_details() -> None:
    code, sentence = faults.translate(KorvetError("MESSAGE_TOO_LARGE"))
    assert code == 10
    assert sentence == FAULTS["MESSAGE_TOO_LARGE"].sentence
