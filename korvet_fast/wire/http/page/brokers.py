"""The brokers of the cluster, and more of this one."""

from collections import Counter

from korvet_fast.wire.http.exchange import Answer, Exchange
from korvet_fast.wire.http.page.render import render
from korvet_fast.wire.http.session import Session


async def show_brokers(session: Session, _: Exchange) -> Answer:
    """`/brokers`: their addresses are those of listeners like the one that was asked."""
    broker, pace = session.broker, session.pace()
    leaders: Counter[int] = Counter()
    for topic in list(broker.topics):
        for partition in list(topic.partitions):
            leaders[broker.find_leader(topic, partition.index)[0]] += 1
            if pace.due():
                await pace.turn()
    members = {member.id: member.rack for member in broker.cluster.members}
    members.setdefault(broker.node_id, None)
    places = {node.id: node.address for node in broker.cluster.nodes(session.service.listener)}
    return await render(
        session,
        "brokers.html",
        pace,
        members=sorted(members.items()),
        places=places,
        leaders=leaders,
        controller=broker.cluster.controller,
        cluster_id=broker.cluster_id,
        use=broker.network_use() if broker.network_use is not None else None,
        losses=list(broker.losses)[-20:],
    )


async def show_settings(session: Session, exchange: Exchange) -> Answer:
    """`/settings`: those that were given first; the field `name` is a part of the names that are wanted."""
    wanted = exchange.query.get("name", "").strip()
    settings = [one for one in session.broker.settings.describe() if wanted in one.name]
    settings.sort(key=lambda one: one.source.value == "default")
    return await render(session, "settings.html", session.pace(), settings=settings, wanted=wanted)
