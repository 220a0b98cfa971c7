"""Every error and every codec error has its Kafka number, and no number is invented."""

import re
from pathlib import Path
from typing import get_args

import pytest
from kafka import errors as kafka_errors

from korvet_fast.core.produce.check import CODEC_ERRORS, blame_records
from korvet_fast.errors import CodecCode, CodecError, Errors, KorvetError
from korvet_fast.wire.kafka import errors

CODEC = Path(__file__).parents[4] / "rust" / "codec" / "src" / "error.rs"

# Codes that come from our own tables and values, from whole requests (`Session` hangs up), from Redis, or patterns.
NOT_OF_RECORDS = {"UNSUPPORTED_VERSION", "BAD_SCHEMA", "DUPLICATE_TAG", "BAD_COLUMNS", "BAD_RESP", "BAD_PATTERN"}


def test_every_error_has_a_number() -> None:
    assert errors.CODES.keys() == set(Errors)
    assert len(set(errors.CODES.values())) == len(errors.CODES)


# Where kafka-python's names are not ours.
SPELLED = {
    "": "NoError",
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


@pytest.mark.parametrize("name", sorted(errors.CODES.keys() - NEWER))
def test_the_numbers_are_kafkas(name: str) -> None:
    known = kafka_errors.for_code(errors.CODES[name]).__name__
    expected = (
        SPELLED.get(name) or "".join(word.capitalize() for word in name.split("_")).removesuffix("Error") + "Error"
    )
    assert known == expected


def test_the_newest_numbers() -> None:
    assert errors.CODES.items() >= NEWER.items()


def test_every_codec_error_is_placed() -> None:
    known = set(re.findall(r'^    \w+ = "([A-Z0-9_]+)",$', CODEC.read_text(), re.M))
    assert len(known) > 20
    assert set(get_args(CodecCode)) == known
    assert CODEC_ERRORS.keys() | NOT_OF_RECORDS == known
    assert not CODEC_ERRORS.keys() & NOT_OF_RECORDS
    assert set(CODEC_ERRORS.values()) <= set(Errors)


@pytest.mark.parametrize("code", sorted(CODEC_ERRORS))
def test_blame_keeps_what_was_wrong(code: str) -> None:
    error = blame_records(CodecError(code, "at byte 7"))
    assert errors.translate(error) == (errors.CODES[CODEC_ERRORS[code]], f"{code}: at byte 7")


def test_translation_has_a_sentence_even_without_details() -> None:
    code, sentence = errors.translate(KorvetError(Errors.MESSAGE_TOO_LARGE))
    assert code == 10
    assert sentence == Errors.MESSAGE_TOO_LARGE.sentence
