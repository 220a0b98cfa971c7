"""Our errors as Kafka's error codes. The only place that knows the numbers.

Source: https://kafka.apache.org/protocol#protocol_error_codes
"""

from typing import Final

from korvet_fast.errors import Errors, KorvetError

NONE: Final = 0
LONGEST_MESSAGE: Final = 2000  # characters; a string of the protocol ends at 32,767 bytes
UNSUPPORTED_VERSION: Final = 35
TOPIC_AUTHORIZATION_FAILED: Final = 29
CLUSTER_AUTHORIZATION_FAILED: Final = 31
# Only this dialect has these to refuse.
UNSUPPORTED_SASL_MECHANISM: Final = 33
ILLEGAL_SASL_STATE: Final = 34
SECURITY_DISABLED: Final = 54
SASL_AUTHENTICATION_FAILED: Final = 58
FETCH_SESSION_ID_NOT_FOUND: Final = 70
RESOURCE_NOT_FOUND: Final = 91
DUPLICATE_RESOURCE: Final = 92
UNACCEPTABLE_CREDENTIAL: Final = 93

# Our broker sends none of these codes. Apache Kafka's brokers do, and our client acts on them.
NETWORK_EXCEPTION: Final = 13
RECORD_LIST_TOO_LARGE: Final = 18

CODES: Final[dict[Errors, int]] = {
    Errors.NONE: NONE,
    Errors.UNKNOWN_SERVER_ERROR: -1,
    Errors.OFFSET_OUT_OF_RANGE: 1,
    Errors.CORRUPT_MESSAGE: 2,
    Errors.UNKNOWN_TOPIC_OR_PARTITION: 3,
    Errors.LEADER_NOT_AVAILABLE: 5,
    Errors.NOT_LEADER_OR_FOLLOWER: 6,
    Errors.REQUEST_TIMED_OUT: 7,
    Errors.MESSAGE_TOO_LARGE: 10,
    Errors.OFFSET_METADATA_TOO_LARGE: 12,
    Errors.COORDINATOR_LOAD_IN_PROGRESS: 14,
    Errors.COORDINATOR_NOT_AVAILABLE: 15,
    Errors.NOT_COORDINATOR: 16,
    Errors.INVALID_TOPIC_EXCEPTION: 17,
    Errors.NOT_ENOUGH_REPLICAS: 19,
    Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND: 20,
    Errors.INVALID_REQUIRED_ACKS: 21,
    Errors.ILLEGAL_GENERATION: 22,
    Errors.INCONSISTENT_GROUP_PROTOCOL: 23,
    Errors.INVALID_GROUP_ID: 24,
    Errors.UNKNOWN_MEMBER_ID: 25,
    Errors.INVALID_SESSION_TIMEOUT: 26,
    Errors.REBALANCE_IN_PROGRESS: 27,
    Errors.INVALID_COMMIT_OFFSET_SIZE: 28,
    Errors.TOPIC_AUTHORIZATION_FAILED: TOPIC_AUTHORIZATION_FAILED,
    Errors.GROUP_AUTHORIZATION_FAILED: 30,
    Errors.CLUSTER_AUTHORIZATION_FAILED: CLUSTER_AUTHORIZATION_FAILED,
    Errors.INVALID_TIMESTAMP: 32,
    Errors.UNSUPPORTED_VERSION: UNSUPPORTED_VERSION,
    Errors.TOPIC_ALREADY_EXISTS: 36,
    Errors.INVALID_PARTITIONS: 37,
    Errors.INVALID_REPLICATION_FACTOR: 38,
    Errors.INVALID_REPLICA_ASSIGNMENT: 39,
    Errors.INVALID_CONFIG: 40,
    Errors.INVALID_REQUEST: 42,
    Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT: 43,
    Errors.POLICY_VIOLATION: 44,
    Errors.OUT_OF_ORDER_SEQUENCE_NUMBER: 45,
    Errors.DUPLICATE_SEQUENCE_NUMBER: 46,
    Errors.INVALID_PRODUCER_EPOCH: 47,
    Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 53,
    Errors.KAFKA_STORAGE_ERROR: 56,
    Errors.UNKNOWN_PRODUCER_ID: 59,
    Errors.NON_EMPTY_GROUP: 68,
    Errors.GROUP_ID_NOT_FOUND: 69,
    Errors.FENCED_LEADER_EPOCH: 74,
    Errors.UNKNOWN_LEADER_EPOCH: 75,
    Errors.UNSUPPORTED_COMPRESSION_TYPE: 76,
    Errors.OFFSET_NOT_AVAILABLE: 78,
    Errors.MEMBER_ID_REQUIRED: 79,
    Errors.PREFERRED_LEADER_NOT_AVAILABLE: 80,
    Errors.GROUP_MAX_SIZE_REACHED: 81,
    Errors.FENCED_INSTANCE_ID: 82,
    Errors.ELECTION_NOT_NEEDED: 84,
    Errors.NO_REASSIGNMENT_IN_PROGRESS: 85,
    Errors.GROUP_SUBSCRIBED_TO_TOPIC: 86,
    Errors.INVALID_RECORD: 87,
    Errors.THROTTLING_QUOTA_EXCEEDED: 89,
    Errors.UNKNOWN_TOPIC_ID: 100,
    Errors.FENCED_MEMBER_EPOCH: 110,
    Errors.UNRELEASED_INSTANCE_ID: 111,
    Errors.UNSUPPORTED_ASSIGNOR: 112,
    Errors.STALE_MEMBER_EPOCH: 113,
    Errors.INVALID_REGULAR_EXPRESSION: 128,
}


def number(error: Errors) -> int:
    """Kafka's number of an error."""
    return CODES[error]


def translate(error: KorvetError) -> tuple[int, str]:
    """Kafka's number, and a sentence for the client's log."""
    return CODES[error.error], shorten(error.detail or error.error.sentence)


def shorten(message: str) -> str:
    """Shorten a sentence so that it fits into an answer: it may quote a name of any length."""
    return message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"
