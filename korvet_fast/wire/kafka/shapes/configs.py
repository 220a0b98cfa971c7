"""Settings: DescribeConfigs (32), AlterConfigs (33), IncrementalAlterConfigs (44), ListConfigResources (74)."""

from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import message

# 1 says where a value comes from and its synonyms; 3 its type and documentation; 4 is flexible.
DESCRIBE_CONFIGS = message(
    "DescribeConfigs",
    32,
    (1, 4),
    4,
    request=(
        Field("resources", "[]", fields=(
            Field("resource_type", "int8"),
            Field("resource_name", "string"),
            Field("configuration_keys", "[]string", nullable=0),
        )),
        Field("include_synonyms", "bool", 1),
        Field("include_documentation", "bool", 3),
    ),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("results", "[]", fields=(
            Field("error_code", "int16"),
            Field("error_message", "string", nullable=0, default=None),
            Field("resource_type", "int8"),
            Field("resource_name", "string"),
            Field("configs", "[]", fields=(
                Field("name", "string"),
                Field("value", "string", nullable=0),
                Field("read_only", "bool"),
                Field("config_source", "int8", 1, default=-1),
                Field("is_sensitive", "bool"),
                Field("synonyms", "[]", 1, fields=(
                    Field("name", "string", 1),
                    Field("value", "string", 1, nullable=0),
                    Field("source", "int8", 1),
                )),
                Field("config_type", "int8", 3),
                Field("documentation", "string", 3, nullable=0, default=None),
            )),
        )),
    ),
)  # fmt: skip

# The response of both requests that alter configs.
_ALTERED = (
    Field("throttle_time_ms", "int32"),
    Field("responses", "[]", fields=(
        Field("error_code", "int16"),
        Field("error_message", "string", nullable=0, default=None),
        Field("resource_type", "int8"),
        Field("resource_name", "string"),
    )),
)  # fmt: skip

# 2 is flexible. The given settings replace all that were set before.
ALTER_CONFIGS = message(
    "AlterConfigs",
    33,
    (0, 2),
    2,
    request=(
        Field("resources", "[]", fields=(
            Field("resource_type", "int8"),
            Field("resource_name", "string"),
            Field("configs", "[]", fields=(
                Field("name", "string"),
                Field("value", "string", nullable=0),
            )),
        )),
        Field("validate_only", "bool"),
    ),
    response=_ALTERED,
)  # fmt: skip

# 1 is flexible. Operations: 0 set, 1 delete, 2 append, 3 subtract (KIP-339).
INCREMENTAL_ALTER_CONFIGS = message(
    "IncrementalAlterConfigs",
    44,
    (0, 1),
    1,
    request=(
        Field("resources", "[]", fields=(
            Field("resource_type", "int8"),
            Field("resource_name", "string"),
            Field("configs", "[]", fields=(
                Field("name", "string"),
                Field("config_operation", "int8"),
                Field("value", "string", nullable=0),
            )),
        )),
        Field("validate_only", "bool"),
    ),
    response=_ALTERED,
)  # fmt: skip

# Flexible from the first version on. 0 lists client metrics only (KIP-714); 1 whatever kind is asked for (KIP-1142).
LIST_CONFIG_RESOURCES = message(
    "ListConfigResources",
    74,
    (0, 1),
    0,
    request=(Field("resource_types", "[]int8", 1),),
    response=(
        Field("throttle_time_ms", "int32"),
        Field("error_code", "int16"),
        Field("config_resources", "[]", fields=(
            Field("resource_name", "string"),
            Field("resource_type", "int8", 1, default=16),
        )),
    ),
)  # fmt: skip
