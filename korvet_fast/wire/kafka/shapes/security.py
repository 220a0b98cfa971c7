"""Security: SaslHandshake (key 17) and SaslAuthenticate (36), ACLs (29, 30, 31), SCRAM credentials (50, 51)."""

from korvet_fast.wire.kafka.shapes.field import NEVER, Field
from korvet_fast.wire.kafka.shapes.message import message

_LITERAL = 3  # PatternType: the resource has this very name

_ACL = (
    Field("principal", "string"),
    Field("host", "string"),
    Field("operation", "int8"),
    Field("permission_type", "int8"),
)

_ACL_FILTER = (
    Field("resource_type_filter", "int8"),
    Field("resource_name_filter", "string", nullable=0),
    Field("pattern_type_filter", "int8", 1, default=_LITERAL),
    Field("principal_filter", "string", nullable=0),
    Field("host_filter", "string", nullable=0),
    Field("operation", "int8"),
    Field("permission_type", "int8"),
)

# Never flexible. 1: what follows comes in SaslAuthenticate requests (KIP-152).
SASL_HANDSHAKE = message(
    "SaslHandshake",
    17,
    (0, 1),
    NEVER,
    request=(Field("mechanism", "string"),),
    response=(
        Field("error_code", "int16"),
        Field("mechanisms", "[]string"),
    ),
)

# 1 how long the login holds (KIP-368); 2 flexible.
SASL_AUTHENTICATE = message(
    "SaslAuthenticate",
    36,
    (0, 2),
    2,
    request=(Field("auth_bytes", "bytes"),),
    response=(
        Field("error_code", "int16"),
        Field("error_message", "string", nullable=0, default=None),
        Field("auth_bytes", "bytes"),
        Field("session_lifetime_ms", "int64", 1),
    ),
)

# 1 prefixes as resources (KIP-290); 2 flexible; 3 users as resources (KIP-373).
DESCRIBE_ACLS = message(
    "DescribeAcls",
    29,
    (1, 3),
    2,
    request=_ACL_FILTER,
    response=(
        Field("throttle_time_ms", "int32"),
        Field("error_code", "int16"),
        Field("error_message", "string", nullable=0, default=None),
        Field("resources", "[]", fields=(
            Field("resource_type", "int8"),
            Field("resource_name", "string"),
            Field("pattern_type", "int8", 1, default=_LITERAL),
            Field("acls", "[]", fields=_ACL),
        )),
    ),
)  # fmt: skip

CREATE_ACLS = message(
    "CreateAcls",
    30,
    (1, 3),
    2,
    request=(
        Field("creations", "[]", fields=(
            Field("resource_type", "int8"),
            Field("resource_name", "string"),
            Field("resource_pattern_type", "int8", 1, default=_LITERAL),
            *_ACL,
        )),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("results", "[]", fields=(
            Field("error_code", "int16"),
            Field("error_message", "string", nullable=0, default=None),
        )),
    ),
)  # fmt: skip

DELETE_ACLS = message(
    "DeleteAcls",
    31,
    (1, 3),
    2,
    request=(
        Field("filters", "[]", fields=_ACL_FILTER),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("filter_results", "[]", fields=(
            Field("error_code", "int16"),
            Field("error_message", "string", nullable=0, default=None),
            Field("matching_acls", "[]", fields=(
                Field("error_code", "int16"),
                Field("error_message", "string", nullable=0, default=None),
                Field("resource_type", "int8"),
                Field("resource_name", "string"),
                Field("pattern_type", "int8", 1, default=_LITERAL),
                *_ACL,
            )),
        )),
    ),
)  # fmt: skip

# Flexible from its only version on (KIP-554).
DESCRIBE_USER_SCRAM_CREDENTIALS = message(
    "DescribeUserScramCredentials",
    50,
    (0, 0),
    0,
    request=(Field("users", "[]", nullable=0, fields=(Field("name", "string"),)),),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("error_code", "int16"),
        Field("error_message", "string", nullable=0, default=None),
        Field("results", "[]", fields=(
            Field("user", "string"),
            Field("error_code", "int16"),
            Field("error_message", "string", nullable=0, default=None),
            Field("credential_infos", "[]", fields=(
                Field("mechanism", "int8"),
                Field("iterations", "int32"),
            )),
        )),
    ),
)  # fmt: skip

# Flexible from its only version on (KIP-554).
ALTER_USER_SCRAM_CREDENTIALS = message(
    "AlterUserScramCredentials",
    51,
    (0, 0),
    0,
    request=(
        Field("deletions", "[]", fields=(
            Field("name", "string"),
            Field("mechanism", "int8"),
        )),
        Field("upsertions", "[]", fields=(
            Field("name", "string"),
            Field("mechanism", "int8"),
            Field("iterations", "int32"),
            Field("salt", "bytes"),
            Field("salted_password", "bytes"),
        )),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("results", "[]", fields=(
            Field("user", "string"),
            Field("error_code", "int16"),
            Field("error_message", "string", nullable=0, default=None),
        )),
    ),
)  # fmt: skip
