"""The check of `--unset NAME`: NAME must be a setting, and must have been set."""

from collections.abc import Iterable, Sequence

from korvet_fast.cli.sentence import did_you_mean
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.configs import Resource, ResourceType, describe_configs
from korvet_fast.client.protocol.errors import ClientError

SET_ON = {ResourceType.TOPIC: "topic", ResourceType.BROKER: "running", ResourceType.BROKER_LOGGER: "running"}


def unknown_setting(resource: Resource, name: str, known: Iterable[str]) -> ClientError:
    """The error for a name that no setting of the resource has."""
    where = f" --topic {resource.name}" if resource.kind is ResourceType.TOPIC else ""
    instead = did_you_mean(name, known) or f"; `korvet-fast config list{where}` has all of them"
    return ClientError(f"{resource} has no setting {name!r}{instead}")


async def check_unset(cluster: Cluster, resource: Resource, names: Sequence[str]) -> None:
    """Raise `ClientError` for a name that is no setting of the resource, or one that is not set on it.

    Brokers take both without a word, as Kafka's do.
    """
    if not names:
        return
    configs = {each.name: each for each in await describe_configs(cluster, resource)}
    for name in names:
        if name not in configs:
            raise unknown_setting(resource, name, configs)
        if configs[name].source != SET_ON[resource.kind]:
            raise ClientError(f"{name} is not set on {resource}, so it cannot be unset: leave --unset {name} out")
