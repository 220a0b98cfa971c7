"""A Faust worker that counts the records of each key in a table and writes the counts to a topic.

Arguments: bootstrap, application id, directory of the state, input topic, output topic, port of its own web server.
"""

import sys

import faust

bootstrap, application, directory, asked, told, port = sys.argv[1:]
app = faust.App(
    application,
    broker=f"kafka://{bootstrap}",
    datadir=directory,
    store="memory://",
    topic_replication_factor=1,
    topic_partitions=1,
    broker_session_timeout=6.0,
    broker_heartbeat_interval=1.0,
    web_port=int(port),
)
counts = app.Table("counts", default=int, partitions=1)
output = app.topic(told, key_type=bytes, value_type=bytes)


@app.agent(app.topic(asked, key_type=bytes, value_type=bytes))
async def count(records: faust.Stream) -> None:
    async for event in records.events():
        key = event.key.decode()
        counts[key] += 1
        await output.send(key=event.key, value=b"all %d" % counts[key])


faust.Worker(app, loglevel="info").execute_from_commandline()
