"""The one table of the APIs served: it drives dispatch, and ApiVersions answers from it."""

from collections.abc import Mapping
from typing import Final

from korvet_fast.wire.kafka.api.acls import create_acls, delete_acls, describe_acls
from korvet_fast.wire.kafka.api.alter_client_quotas import alter_client_quotas
from korvet_fast.wire.kafka.api.alter_configs import alter_configs, incremental_alter_configs
from korvet_fast.wire.kafka.api.alter_partition_reassignments import alter_partition_reassignments
from korvet_fast.wire.kafka.api.alter_user_scram_credentials import alter_user_scram_credentials
from korvet_fast.wire.kafka.api.api_versions import api_versions
from korvet_fast.wire.kafka.api.consumer_group_describe import consumer_group_describe
from korvet_fast.wire.kafka.api.consumer_group_heartbeat import consumer_group_heartbeat
from korvet_fast.wire.kafka.api.create_partitions import create_partitions
from korvet_fast.wire.kafka.api.create_topics import create_topics
from korvet_fast.wire.kafka.api.delete_groups import delete_groups
from korvet_fast.wire.kafka.api.delete_records import delete_records
from korvet_fast.wire.kafka.api.delete_topics import delete_topics
from korvet_fast.wire.kafka.api.describe_client_quotas import describe_client_quotas
from korvet_fast.wire.kafka.api.describe_cluster import describe_cluster
from korvet_fast.wire.kafka.api.describe_configs import describe_configs
from korvet_fast.wire.kafka.api.describe_groups import describe_groups
from korvet_fast.wire.kafka.api.describe_log_dirs import describe_log_dirs
from korvet_fast.wire.kafka.api.describe_quorum import describe_quorum
from korvet_fast.wire.kafka.api.describe_topic_partitions import describe_topic_partitions
from korvet_fast.wire.kafka.api.describe_user_scram_credentials import describe_user_scram_credentials
from korvet_fast.wire.kafka.api.elect_leaders import elect_leaders
from korvet_fast.wire.kafka.api.fetch import fetch
from korvet_fast.wire.kafka.api.find_coordinator import find_coordinator
from korvet_fast.wire.kafka.api.heartbeat import heartbeat
from korvet_fast.wire.kafka.api.init_producer_id import init_producer_id
from korvet_fast.wire.kafka.api.join_group import join_group
from korvet_fast.wire.kafka.api.leave_group import leave_group
from korvet_fast.wire.kafka.api.list_config_resources import list_config_resources
from korvet_fast.wire.kafka.api.list_groups import list_groups
from korvet_fast.wire.kafka.api.list_offsets import list_offsets
from korvet_fast.wire.kafka.api.list_partition_reassignments import list_partition_reassignments
from korvet_fast.wire.kafka.api.metadata import metadata
from korvet_fast.wire.kafka.api.offset_commit import offset_commit
from korvet_fast.wire.kafka.api.offset_delete import offset_delete
from korvet_fast.wire.kafka.api.offset_fetch import offset_fetch
from korvet_fast.wire.kafka.api.offset_for_leader_epoch import offset_for_leader_epoch
from korvet_fast.wire.kafka.api.produce import produce
from korvet_fast.wire.kafka.api.sasl_authenticate import sasl_authenticate
from korvet_fast.wire.kafka.api.sasl_handshake import sasl_handshake
from korvet_fast.wire.kafka.api.sync_group import sync_group
from korvet_fast.wire.kafka.costs import (
    by_rows,
    of_all_groups,
    of_client_quotas,
    of_config_resources,
    of_consumer_heartbeat,
    of_create_topics,
    of_delete_topics,
    of_groups,
    of_log_dirs,
    of_metadata,
    of_offset_fetch,
    of_scram_changes,
    of_topic_partitions,
)
from korvet_fast.wire.kafka.session import Route
from korvet_fast.wire.kafka.shapes import (
    cluster,
    commits,
    configs,
    consumer_groups,
    coordinators,
    directories,
    group_admin,
    groups,
    offsets,
    producers,
    quorum,
    security,
    topics,
)
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.produce import PRODUCE

ROUTES: Final[Mapping[int, Route]] = {
    route.message.key: route
    for route in (
        # librdkafka stops compressing when it is not told of version 0 (KAFKA-18659), which it then does not use.
        Route(PRODUCE, 3, 11, produce, advertised=0),
        Route(FETCH, 4, 12, fetch),
        Route(offsets.LIST_OFFSETS, 1, 9, list_offsets, cost=by_rows(500, 30, "topics", "partitions")),
        Route(cluster.METADATA, 0, 12, metadata, cost=of_metadata),
        Route(commits.OFFSET_COMMIT, 2, 9, offset_commit, cost=by_rows(300, 15, "topics", "partitions"), alone=True),
        Route(commits.OFFSET_FETCH, 1, 9, offset_fetch, cost=of_offset_fetch),
        Route(coordinators.FIND_COORDINATOR, 0, 5, find_coordinator, cost=by_rows(500, 5, "coordinator_keys")),
        Route(groups.JOIN_GROUP, 0, 9, join_group, cost=by_rows(200, 5, "protocols")),
        Route(groups.HEARTBEAT, 0, 4, heartbeat),
        Route(groups.LEAVE_GROUP, 0, 5, leave_group, cost=by_rows(500, 10, "members")),
        Route(groups.SYNC_GROUP, 0, 5, sync_group, cost=by_rows(0, 5, "assignments")),
        Route(group_admin.DESCRIBE_GROUPS, 0, 6, describe_groups, cost=of_groups("groups")),
        Route(group_admin.LIST_GROUPS, 0, 5, list_groups, cost=of_all_groups),
        Route(cluster.API_VERSIONS, 0, 4, api_versions),
        Route(topics.CREATE_TOPICS, 2, 7, create_topics, cost=of_create_topics),
        Route(topics.DELETE_TOPICS, 1, 6, delete_topics, cost=of_delete_topics),
        Route(topics.DELETE_RECORDS, 0, 2, delete_records, cost=by_rows(500, 200, "topics", "partitions")),
        Route(producers.INIT_PRODUCER_ID, 0, 5, init_producer_id),
        Route(
            offsets.OFFSET_FOR_LEADER_EPOCH,
            2,
            4,
            offset_for_leader_epoch,
            cost=by_rows(500, 10, "topics", "partitions"),
        ),
        Route(configs.DESCRIBE_CONFIGS, 1, 4, describe_configs, cost=by_rows(16_384, 800, "resources")),
        Route(configs.ALTER_CONFIGS, 0, 2, alter_configs, cost=by_rows(500, 200, "resources", "configs")),
        Route(directories.DESCRIBE_LOG_DIRS, 1, 4, describe_log_dirs, cost=of_log_dirs),
        Route(topics.CREATE_PARTITIONS, 0, 3, create_partitions, cost=by_rows(500, 200, "topics", "assignments")),
        Route(group_admin.DELETE_GROUPS, 0, 2, delete_groups, cost=by_rows(200, 200, "groups_names")),
        Route(
            configs.INCREMENTAL_ALTER_CONFIGS,
            0,
            1,
            incremental_alter_configs,
            cost=by_rows(500, 200, "resources", "configs"),
        ),
        Route(cluster.ELECT_LEADERS, 0, 2, elect_leaders, cost=by_rows(200, 200, "topic_partitions", "partitions")),
        Route(
            cluster.ALTER_PARTITION_REASSIGNMENTS,
            0,
            0,
            alter_partition_reassignments,
            cost=by_rows(200, 200, "topics", "partitions"),
        ),
        Route(cluster.LIST_PARTITION_REASSIGNMENTS, 0, 0, list_partition_reassignments),
        Route(group_admin.OFFSET_DELETE, 0, 0, offset_delete, cost=by_rows(500, 20, "topics", "partitions")),
        Route(cluster.DESCRIBE_CLUSTER, 0, 2, describe_cluster),
        Route(
            consumer_groups.CONSUMER_GROUP_HEARTBEAT,
            0,
            1,
            consumer_group_heartbeat,
            cost=of_consumer_heartbeat,
        ),
        Route(consumer_groups.CONSUMER_GROUP_DESCRIBE, 0, 1, consumer_group_describe, cost=of_groups("group_ids")),
        Route(security.SASL_HANDSHAKE, 0, 1, sasl_handshake),
        Route(security.SASL_AUTHENTICATE, 0, 2, sasl_authenticate),
        Route(security.DESCRIBE_ACLS, 1, 3, describe_acls),
        Route(security.CREATE_ACLS, 1, 3, create_acls, cost=by_rows(200, 3, "creations")),
        Route(security.DELETE_ACLS, 1, 3, delete_acls, cost=by_rows(200, 3, "filters")),
        Route(quorum.DESCRIBE_CLIENT_QUOTAS, 0, 1, describe_client_quotas, cost=of_client_quotas),
        Route(
            quorum.ALTER_CLIENT_QUOTAS,
            0,
            1,
            alter_client_quotas,
            cost=by_rows(500, 200, "entries", "ops"),
            alone=True,
        ),
        Route(
            security.DESCRIBE_USER_SCRAM_CREDENTIALS,
            0,
            0,
            describe_user_scram_credentials,
            cost=by_rows(500, 200, "users"),
        ),
        Route(
            security.ALTER_USER_SCRAM_CREDENTIALS,
            0,
            0,
            alter_user_scram_credentials,
            cost=of_scram_changes,
            alone=True,
        ),
        Route(quorum.DESCRIBE_QUORUM, 0, 2, describe_quorum, cost=by_rows(200, 10, "topics", "partitions")),
        Route(configs.LIST_CONFIG_RESOURCES, 0, 1, list_config_resources, cost=of_config_resources),
        Route(cluster.DESCRIBE_TOPIC_PARTITIONS, 0, 0, describe_topic_partitions, cost=of_topic_partitions),
    )
}
