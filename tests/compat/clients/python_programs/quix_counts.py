"""A Quix Streams application that counts the records of each key in its state and writes the counts to a topic.

Arguments: bootstrap, consumer group, directory of the state, input topic, output topic.
"""

import sys
from typing import Any

from quixstreams import Application, State

bootstrap, group, directory, asked, told = sys.argv[1:]
app = Application(
    broker_address=bootstrap,
    consumer_group=group,
    state_dir=directory,
    auto_offset_reset="earliest",
    commit_interval=0.2,
    consumer_extra_config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000},
)


def count(_: Any, state: State) -> str:
    total = state.get("count", 0) + 1
    state.set("count", total)
    return f"all {total}"


output = app.topic(told, value_serializer="str")
app.dataframe(app.topic(asked, value_deserializer="bytes")).apply(count, stateful=True).to_topic(output)
app.run()
