"""Every error of the product, in two kinds (a leaf: importable by all floors).

`CodecError`: a peer sent bytes that break a rule of the format. Answer with an error code, or close.
`KorvetError`: a rule of ours said no. It carries a member of `Errors`; each dialect maps the members to its own
codes once, in its `errors.py`. Any other exception is a bug of ours: it is logged with its traceback.
"""

from enum import StrEnum
from typing import Final, Literal, Self, TypeAlias, TypeVar

# Every code of the codec, as rust/codec/src/error.rs has them and explains them: mypy knows a typing error from a code.
CodecCode: TypeAlias = Literal[
    "TRUNCATED",
    "OVERSIZE",
    "NEGATIVE_LENGTH",
    "VARINT_OVERFLOW",
    "BAD_UTF8",
    "UNEXPECTED_NULL",
    "COUNT_EXCEEDS_INPUT",
    "TRAILING_BYTES",
    "TOO_MANY_ELEMENTS",
    "OUT_OF_RANGE",
    "UNSUPPORTED_VERSION",
    "BAD_VALUE",
    "BAD_SCHEMA",
    "DUPLICATE_TAG",
    "BAD_MAGIC",
    "BAD_CRC",
    "BAD_LENGTH",
    "BAD_COUNT",
    "BAD_OFFSET",
    "BAD_ATTRIBUTES",
    "BAD_RECORD",
    "BAD_COLUMNS",
    "UNKNOWN_COMPRESSION",
    "CORRUPT_COMPRESSION",
    "DECOMPRESSION_LIMIT",
    "NESTED_COMPRESSION",
    "BAD_RESP",
    "BAD_PATTERN",
]


class CodecError(Exception):
    """Bytes that break a rule of the format, or values that do not fit their shape.

    `code` is stable and the same in the native codec and in `korvet_reference`; `message` says where and what.
    """

    def __init__(self, code: CodecCode, message: str = "") -> None:
        super().__init__(code, message)
        self.code: CodecCode = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


class Errors(StrEnum):
    """The reasons for which the broker refuses. A member equals its name; `NONE` is "" and false.

    Names are Kafka's (kafka.apache.org/protocol#protocol_error_codes), but any dialect may meet them. `retriable`: the
    same request may succeed later. `sentence`: the text for a person.
    """

    retriable: bool
    sentence: str

    def __new__(cls, name: str, retriable: bool, sentence: str) -> Self:
        member = str.__new__(cls, name)
        member._value_ = name
        member.retriable = retriable
        member.sentence = sentence
        return member

    __hash__ = str.__hash__  # as that of the equal string, and faster than Enum's

    NONE = "", False, "There is no error."
    OFFSET_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE", False, "The offset is outside the log."
    CORRUPT_MESSAGE = "CORRUPT_MESSAGE", True, "The records fail their checksum or break the batch format."
    UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION", True, "There is no such topic or partition here."
    LEADER_NOT_AVAILABLE = "LEADER_NOT_AVAILABLE", True, "The partition has no leader at this moment."
    OFFSET_NOT_AVAILABLE = (
        "OFFSET_NOT_AVAILABLE",
        True,
        "The leader is new, and does not know yet how far consumers may read.",
    )
    NOT_LEADER_OR_FOLLOWER = "NOT_LEADER_OR_FOLLOWER", True, "This broker does not lead the partition."
    REQUEST_TIMED_OUT = "REQUEST_TIMED_OUT", True, "The request did not finish in the time it allowed."
    MESSAGE_TOO_LARGE = "MESSAGE_TOO_LARGE", False, "The batch is larger than the topic's max.message.bytes."
    INVALID_TOPIC_EXCEPTION = "INVALID_TOPIC_EXCEPTION", False, "The topic name is not legal."
    NOT_ENOUGH_REPLICAS = "NOT_ENOUGH_REPLICAS", True, "Fewer copies can be made than min.insync.replicas asks for."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        True,
        "Fewer copies were made in time than min.insync.replicas asks for.",
    )
    INVALID_REQUIRED_ACKS = "INVALID_REQUIRED_ACKS", False, "acks must be 0, 1 or all (-1)."
    UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION", False, "This version of the request is not served."
    TOPIC_ALREADY_EXISTS = "TOPIC_ALREADY_EXISTS", False, "A topic with this name already exists."
    INVALID_PARTITIONS = "INVALID_PARTITIONS", False, "The number of partitions is not legal."
    INVALID_REPLICATION_FACTOR = (
        "INVALID_REPLICATION_FACTOR",
        False,
        "The replication factor is not legal for this broker.",
    )
    INVALID_REPLICA_ASSIGNMENT = "INVALID_REPLICA_ASSIGNMENT", False, "Manual replica assignment is not served."
    INVALID_CONFIG = "INVALID_CONFIG", False, "A setting's name or value is not legal."
    INVALID_REQUEST = "INVALID_REQUEST", False, "The request contradicts itself."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        False,
        "The record format does not support this operation.",
    )
    POLICY_VIOLATION = "POLICY_VIOLATION", False, "The request is refused by this broker's policy."
    OUT_OF_ORDER_SEQUENCE_NUMBER = (
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        False,
        "The batch does not follow the producer's last one.",
    )
    DUPLICATE_SEQUENCE_NUMBER = (
        "DUPLICATE_SEQUENCE_NUMBER",
        False,
        "The batch was stored before, too long ago to say at which offset.",
    )
    INVALID_PRODUCER_EPOCH = "INVALID_PRODUCER_EPOCH", False, "A newer instance of this producer is known."
    UNKNOWN_PRODUCER_ID = "UNKNOWN_PRODUCER_ID", False, "Nothing is known of this producer id."
    TOPIC_AUTHORIZATION_FAILED = "TOPIC_AUTHORIZATION_FAILED", False, "No ACL lets this client do that to the topic."
    GROUP_AUTHORIZATION_FAILED = "GROUP_AUTHORIZATION_FAILED", False, "No ACL lets this client do that to the group."
    CLUSTER_AUTHORIZATION_FAILED = (
        "CLUSTER_AUTHORIZATION_FAILED",
        False,
        "No ACL lets this client do that to the cluster.",
    )
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        False,
        "Transactions are not served.",
    )
    KAFKA_STORAGE_ERROR = "KAFKA_STORAGE_ERROR", True, "The store failed to read or write."
    FENCED_LEADER_EPOCH = "FENCED_LEADER_EPOCH", True, "The leader epoch in the request is older than the broker's."
    UNKNOWN_LEADER_EPOCH = "UNKNOWN_LEADER_EPOCH", True, "The leader epoch in the request is newer than the broker's."
    UNSUPPORTED_COMPRESSION_TYPE = (
        "UNSUPPORTED_COMPRESSION_TYPE",
        False,
        "The compression is not supported by this version of the request.",
    )
    INVALID_RECORD = "INVALID_RECORD", False, "A record of the batch breaks a rule of the topic or of the format."
    OFFSET_METADATA_TOO_LARGE = (
        "OFFSET_METADATA_TOO_LARGE",
        False,
        "The text with a committed offset is longer than offset.metadata.max.bytes.",
    )
    INVALID_COMMIT_OFFSET_SIZE = (
        "INVALID_COMMIT_OFFSET_SIZE",
        False,
        "The group's commits would take more than group.memory.max.bytes.",
    )
    THROTTLING_QUOTA_EXCEEDED = (
        "THROTTLING_QUOTA_EXCEEDED",
        True,
        "More partitions are created and deleted than controller.mutation.rate lets.",
    )
    COORDINATOR_LOAD_IN_PROGRESS = "COORDINATOR_LOAD_IN_PROGRESS", True, "The group is being loaded from the store."
    NOT_COORDINATOR = "NOT_COORDINATOR", True, "This broker does not coordinate the group."
    ILLEGAL_GENERATION = "ILLEGAL_GENERATION", False, "The group has gone on to another generation."
    INCONSISTENT_GROUP_PROTOCOL = (
        "INCONSISTENT_GROUP_PROTOCOL",
        False,
        "The members of the group have no protocol in common with this one.",
    )
    INVALID_GROUP_ID = "INVALID_GROUP_ID", False, "A group's name has 1 to 255 characters here."
    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID", False, "The group has no such member."
    INVALID_SESSION_TIMEOUT = (
        "INVALID_SESSION_TIMEOUT",
        False,
        "The session timeout is outside what group.*.session.timeout.ms allow.",
    )
    REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS", True, "The group is rebalancing: join it again."
    NON_EMPTY_GROUP = "NON_EMPTY_GROUP", False, "The group still has members."
    GROUP_ID_NOT_FOUND = "GROUP_ID_NOT_FOUND", False, "There is no such group."
    MEMBER_ID_REQUIRED = "MEMBER_ID_REQUIRED", True, "Join again with the member id given."
    GROUP_MAX_SIZE_REACHED = "GROUP_MAX_SIZE_REACHED", False, "The group has group.max.size members."
    FENCED_INSTANCE_ID = (
        "FENCED_INSTANCE_ID",
        False,
        "Another consumer with the same group.instance.id has taken this one's place.",
    )
    FENCED_MEMBER_EPOCH = "FENCED_MEMBER_EPOCH", False, "The member has to give up all its partitions and join again."
    UNRELEASED_INSTANCE_ID = (
        "UNRELEASED_INSTANCE_ID",
        False,
        "Another consumer with the same group.instance.id is still in the group.",
    )
    STALE_MEMBER_EPOCH = (
        "STALE_MEMBER_EPOCH",
        True,
        "The member has another epoch by now, which it learns with its next heartbeat.",
    )
    UNSUPPORTED_ASSIGNOR = "UNSUPPORTED_ASSIGNOR", False, "group.consumer.assignors has no such assignor."
    INVALID_REGULAR_EXPRESSION = (
        "INVALID_REGULAR_EXPRESSION",
        False,
        "The regular expression is not one that is served.",
    )
    GROUP_SUBSCRIBED_TO_TOPIC = "GROUP_SUBSCRIBED_TO_TOPIC", False, "Members of the group read this topic."
    INVALID_TIMESTAMP = "INVALID_TIMESTAMP", False, "A record's timestamp is outside the range the topic accepts."
    PREFERRED_LEADER_NOT_AVAILABLE = (
        "PREFERRED_LEADER_NOT_AVAILABLE",
        True,
        "The first replica cannot lead the partition now.",
    )
    ELECTION_NOT_NEEDED = "ELECTION_NOT_NEEDED", True, "The first replica leads the partition already."
    NO_REASSIGNMENT_IN_PROGRESS = (
        "NO_REASSIGNMENT_IN_PROGRESS",
        False,
        "Nothing is being moved from one broker to another.",
    )
    UNKNOWN_TOPIC_ID = "UNKNOWN_TOPIC_ID", True, "There is no topic with this id here."
    COORDINATOR_NOT_AVAILABLE = "COORDINATOR_NOT_AVAILABLE", True, "The coordinator is not available."
    UNKNOWN_SERVER_ERROR = (
        "UNKNOWN_SERVER_ERROR",
        False,
        "The broker met an error it did not expect; its log has the details.",
    )


# For what every request does: Python 3.11 looks up an enum's member ten times slower than a global name.
NONE: Final = Errors.NONE


class KorvetError(Exception):
    """A rule of ours said no. `error`: which; `detail` adds what exactly, and what to do."""

    def __init__(self, error: Errors, detail: str = "") -> None:
        super().__init__(error, detail)
        self.error = error
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.error}: {self.detail or self.error.sentence}"


class StoreError(KorvetError):
    """The store failed to read or write, or its outcome is unknown; the operator must look at the log.

    `logged`: the store has logged it already.
    """

    logged = False

    def __init__(self, detail: str, *, logged: bool = False) -> None:
        super().__init__(Errors.KAFKA_STORAGE_ERROR, detail)
        self.logged = logged


class OutcomeUnknown(StoreError):
    """An append may have been carried out, or was and may be lost again: nobody knows.

    Clients are told REQUEST_TIMED_OUT. They take KAFKA_STORAGE_ERROR and NOT_LEADER_OR_FOLLOWER for "not stored", and
    then an idempotent producer may send the same records in other batches, which are no repetitions any more.
    """

    def __init__(self, detail: str, error: Errors = Errors.REQUEST_TIMED_OUT) -> None:
        KorvetError.__init__(self, error, detail)


class TooFewCopies(OutcomeUnknown):
    """Stored, and then not copied in time as often as min.insync.replicas asks for."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


class ChangeTooLarge(StoreError):
    """A change of keys is larger than the store takes at a time: nothing was done, and it would not be next time."""

    def __init__(self, detail: str) -> None:
        KorvetError.__init__(self, Errors.POLICY_VIOLATION, detail)  # as Kafka's controller (EventHandlerExceptionInfo)


RAISE_FILE_LIMIT: Final = "raise the limit of open files (`ulimit -n`, LimitNOFILE=)"  # what to do after EMFILE


class TooFewThreads(OSError):
    """The system starts no more threads for this process."""

    def __init__(self) -> None:
        super().__init__(
            "the system starts no more threads for this process, and a broker needs up to 30: raise the limit "
            "(ulimit -u, or pids.max of its cgroup)"
        )


class SettingError(Exception):
    """A person gave a setting that cannot be used; the text says which, why, and what to write instead."""


E = TypeVar("E", bound=Exception)


def forget_frames(error: E) -> E:
    """The error as a plain value. It knows the frames it went through, and these would live for as long as it does."""
    error.__cause__ = error.__context__ = error.__traceback__ = None
    return error
