"""Our faults as Kafka's error codes, and what is wrong with a batch as a fault. The only place that knows the numbers.

Source: https://kafka.apache.org/protocol#protocol_error_codes
"""

from typing import Final

from korvet_fast.errors import CodecError, KorvetError

NONE: Final = 0
UNSUPPORTED_VERSION: Final = 35
FETCH_SESSION_ID_NOT_FOUND: Final = 70  # only this dialect has fetch sessions to refuse

CODES: Final[dict[str, int]] = {
    "UNKNOWN_SERVER_ERROR": -1,
    "OFFSET_OUT_OF_RANGE": 1,
    "CORRUPT_MESSAGE": 2,
    "UNKNOWN_TOPIC_OR_PARTITION": 3,
    "LEADER_NOT_AVAILABLE": 5,
    "NOT_LEADER_OR_FOLLOWER": 6,
    "REQUEST_TIMED_OUT": 7,
    "MESSAGE_TOO_LARGE": 10,
    "OFFSET_METADATA_TOO_LARGE": 12,
    "COORDINATOR_LOAD_IN_PROGRESS": 14,
    "COORDINATOR_NOT_AVAILABLE": 15,
    "NOT_COORDINATOR": 16,
    "INVALID_TOPIC_EXCEPTION": 17,
    "NOT_ENOUGH_REPLICAS": 19,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": 20,
    "INVALID_REQUIRED_ACKS": 21,
    "ILLEGAL_GENERATION": 22,
    "INCONSISTENT_GROUP_PROTOCOL": 23,
    "INVALID_GROUP_ID": 24,
    "UNKNOWN_MEMBER_ID": 25,
    "INVALID_SESSION_TIMEOUT": 26,
    "REBALANCE_IN_PROGRESS": 27,
    "INVALID_TIMESTAMP": 32,
    "UNSUPPORTED_VERSION": UNSUPPORTED_VERSION,
    "TOPIC_ALREADY_EXISTS": 36,
    "INVALID_PARTITIONS": 37,
    "INVALID_REPLICATION_FACTOR": 38,
    "INVALID_REPLICA_ASSIGNMENT": 39,
    "INVALID_CONFIG": 40,
    "INVALID_REQUEST": 42,
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": 43,
    "POLICY_VIOLATION": 44,
    "OUT_OF_ORDER_SEQUENCE_NUMBER": 45,
    "DUPLICATE_SEQUENCE_NUMBER": 46,
    "INVALID_PRODUCER_EPOCH": 47,
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": 53,
    "KAFKA_STORAGE_ERROR": 56,
    "UNKNOWN_PRODUCER_ID": 59,
    "NON_EMPTY_GROUP": 68,
    "GROUP_ID_NOT_FOUND": 69,
    "FENCED_LEADER_EPOCH": 74,
    "UNKNOWN_LEADER_EPOCH": 75,
    "UNSUPPORTED_COMPRESSION_TYPE": 76,
    "MEMBER_ID_REQUIRED": 79,
    "GROUP_MAX_SIZE_REACHED": 81,
    "FENCED_INSTANCE_ID": 82,
    "GROUP_SUBSCRIBED_TO_TOPIC": 86,
    "INVALID_RECORD": 87,
    "UNKNOWN_TOPIC_ID": 100,
    "FENCED_MEMBER_EPOCH": 110,
    "UNRELEASED_INSTANCE_ID": 111,
    "UNSUPPORTED_ASSIGNOR": 112,
    "STALE_MEMBER_EPOCH": 113,
    "INVALID_REGULAR_EXPRESSION": 128,
}

# What `check` finds in a producer's batch. CORRUPT_MESSAGE makes a client send again, because the bytes may have been
# damaged on the way; INVALID_RECORD tells it that its batch is wrong and stays wrong.
CODEC_FAULTS: Final[dict[str, str]] = {
    "TRUNCATED": "CORRUPT_MESSAGE",
    "BAD_CRC": "CORRUPT_MESSAGE",
    "BAD_LENGTH": "CORRUPT_MESSAGE",
    "CORRUPT_COMPRESSION": "CORRUPT_MESSAGE",
    "BAD_MAGIC": "INVALID_RECORD",  # as Kafka calls older formats in version 3 and up of Produce
    "UNKNOWN_COMPRESSION": "UNSUPPORTED_COMPRESSION_TYPE",
    "DECOMPRESSION_LIMIT": "MESSAGE_TOO_LARGE",
    "OVERSIZE": "MESSAGE_TOO_LARGE",
    "NEGATIVE_LENGTH": "INVALID_RECORD",
    "VARINT_OVERFLOW": "INVALID_RECORD",
    "BAD_UTF8": "INVALID_RECORD",
    "UNEXPECTED_NULL": "INVALID_RECORD",
    "COUNT_EXCEEDS_INPUT": "INVALID_RECORD",
    "TRAILING_BYTES": "INVALID_RECORD",
    "TOO_MANY_ELEMENTS": "INVALID_RECORD",
    "OUT_OF_RANGE": "INVALID_RECORD",
    "BAD_COUNT": "INVALID_RECORD",
    "BAD_OFFSET": "INVALID_RECORD",
    "BAD_ATTRIBUTES": "INVALID_RECORD",
    "BAD_RECORD": "INVALID_RECORD",
    "BAD_VALUE": "INVALID_RECORD",  # a producer id without epoch or sequence
    "NESTED_COMPRESSION": "INVALID_RECORD",
}


def number(fault: str) -> int:
    """Kafka's number of a fault's name; 0 of "", which is none."""
    return CODES[fault] if fault else NONE


def translate(error: KorvetError) -> tuple[int, str]:
    """Kafka's number, and a sentence for the client's log."""
    return CODES[error.fault.name], error.detail or error.fault.sentence


def blame_records(error: CodecError) -> KorvetError:
    """The fault of a producer whose records break the format; a code that no bytes can cause is our own bug."""
    return KorvetError(CODEC_FAULTS[error.code], str(error))
