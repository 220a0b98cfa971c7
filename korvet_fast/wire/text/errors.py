"""Our errors in the text protocol's words. Messages are sentences of ours: nothing of a request comes back in them."""

from collections.abc import Mapping
from typing import Final

from korvet_fast.errors import Errors

BAD_REQUEST: Final = "BAD_REQUEST"
UNKNOWN_COMMAND: Final = "UNKNOWN_COMMAND"
REPLICATION_TIMEOUT: Final = "REPLICATION_TIMEOUT"
NOT_LEADER: Final = "NOT_LEADER"
GENERATION_MISMATCH: Final = "GENERATION_MISMATCH"
UNKNOWN_TOPIC: Final = "UNKNOWN_TOPIC"
UNAUTHORIZED: Final = "UNAUTHORIZED"
STORAGE_ERROR: Final = "STORAGE_ERROR"

# Other errors are BAD_REQUEST, or STORAGE_ERROR where a retry may help; the message is our error's sentence.
_TABLE: Final[Mapping[Errors, tuple[str, str]]] = {
    Errors.UNKNOWN_TOPIC_OR_PARTITION: (UNKNOWN_TOPIC, "there is no such topic or partition"),
    Errors.UNKNOWN_TOPIC_ID: (UNKNOWN_TOPIC, "there is no such topic or partition"),
    Errors.TOPIC_AUTHORIZATION_FAILED: (UNAUTHORIZED, "no ACL lets this client do that to the topic"),
    Errors.GROUP_AUTHORIZATION_FAILED: (UNAUTHORIZED, "no ACL lets this client do that to the group"),
    Errors.NOT_LEADER_OR_FOLLOWER: (NOT_LEADER, "this broker does not lead the partition now"),
    Errors.LEADER_NOT_AVAILABLE: (NOT_LEADER, "nobody leads the partition at this moment"),
    Errors.FENCED_LEADER_EPOCH: (NOT_LEADER, "the partition is led under a later epoch"),
    Errors.UNKNOWN_LEADER_EPOCH: (NOT_LEADER, "the partition is not led under that epoch yet"),
    Errors.NOT_COORDINATOR: (NOT_LEADER, "another broker coordinates this group"),
    Errors.REQUEST_TIMED_OUT: (
        REPLICATION_TIMEOUT,
        "the record may be in the log, but is not yet as safe as acks asks for; it may still be committed",
    ),
    Errors.NOT_ENOUGH_REPLICAS: (
        REPLICATION_TIMEOUT,
        "fewer copies can be made than min.insync.replicas asks for; nothing was stored",
    ),
    Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND: (
        REPLICATION_TIMEOUT,
        "stored, but fewer copies were made in time than min.insync.replicas asks for",
    ),
    Errors.UNKNOWN_MEMBER_ID: (GENERATION_MISMATCH, "the group has no such member: JOIN it"),
    Errors.ILLEGAL_GENERATION: (GENERATION_MISMATCH, "the group is at another generation: JOIN it again"),
    Errors.FENCED_MEMBER_EPOCH: (GENERATION_MISMATCH, "the partition is not assigned to this member"),
}


def translate(error: Errors, reason: str = "") -> tuple[str, str]:
    """The code and the message. `reason`: what to say instead of the error's own sentence."""
    code, message = _TABLE.get(error) or (STORAGE_ERROR if error.retriable else BAD_REQUEST, error.sentence)
    return code, reason or message
