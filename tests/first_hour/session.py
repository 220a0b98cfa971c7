"""The first hour of a new user, as commands and what each has to do. `walk.py` types them, in this order.

Every command is run by bash, in one directory, with nothing in the environment but PATH, HOME and KORVET_BOOTSTRAP.
$PORT is the broker's, $OTHER_PORT a free one, $REDIS the port of an empty Redis.
"""

from typing import NamedTuple


class Step(NamedTuple):
    """A command, its exit status, and regular expressions: what its output has, in any order, and what it never has."""

    what: str
    command: str
    status: int
    shown: tuple[str, ...] = ()
    never: str = ""


PYTHON_CLIENT = """python - <<'END'
import os
from confluent_kafka import Consumer, Producer
address = {"bootstrap.servers": os.environ["KORVET_BOOTSTRAP"]}
producer = Producer(address)
producer.produce("payments", key="p-1", value="12 EUR")
assert producer.flush(20) == 0
consumer = Consumer(address | {"group.id": "books", "auto.offset.reset": "earliest"})
consumer.subscribe(["payments"])
message = consumer.poll(20)
print(message.key(), message.value(), message.offset())
consumer.close()
END"""

OWN_CLIENT = """python - <<'END'
import asyncio, os
from korvet_fast.client import AsyncProducer

async def main():
    async with AsyncProducer(os.environ["KORVET_BOOTSTRAP"], acks="all") as producer:
        print("offset", (await producer.send("payments", b"7 EUR", key=b"p-2")).offset)

asyncio.run(main())
END"""

LIVE_MEMBER = """korvet-fast consume orders --group live > live.txt & member=$!
until korvet-fast group describe live --json 2>&1 | grep -q '"members": 1'; do sleep 0.1; done
status=0; korvet-fast group reset live --topic orders --to earliest || status=$?
kill $member; wait $member; exit $status"""

# bash lets what it starts with & ignore the signal of Ctrl-C, so `timeout` sends it; a busy machine starts slowly.
COUNTED = "(seq 1000; sleep 9) | timeout -s INT 8 korvet-fast produce orders"

OVER_REDIS = """korvet-fast serve --listen kafka://127.0.0.1:$OTHER_PORT > redis.log 2>&1 & broker=$!
until grep -q 'ready kafka' redis.log; do sleep 0.1; done
export KORVET_BOOTSTRAP=127.0.0.1:$OTHER_PORT
printf '1\\n2\\n3\\n' | korvet-fast produce three
korvet-fast topic describe three; korvet-fast topic describe three --count
redis-cli -p $REDIS XLEN korvet:three:0
kill $broker; wait $broker; grep -c '"level": "warning".*append-only' redis.log"""

SETTLED = """env KORVET_FAST_SERVICE_HOST=10.0.0.1 KORVET_FAST_SERVICE_PORT=80 KORVET_FAST_PORT_9092_TCP=tcp://x \\
korvet-fast serve --store file:kubernetes --listen kafka://127.0.0.1:$OTHER_PORT > kubernetes.log 2>&1 & broker=$!
until grep -q 'ready kafka' kubernetes.log; do kill -0 $broker || exit 9; sleep 0.1; done
kill $broker; wait $broker"""

STEPS = (
    # What it is, and a topic.
    Step("the version", "korvet-fast --version", 0, (r"^korvet-fast \d+\.\d+\.\d+$",)),
    Step("help that teaches", "korvet-fast topic create --help", 0, ("Examples?:", "korvet-fast topic create")),
    Step("a topic", "korvet-fast topic create orders --partitions 2", 0, ("created topic orders with 2 partitions",)),
    Step("topics", "korvet-fast topic list --json", 0, ('"topic": "orders"', '"partitions": 2')),
    Step("one partition, in the singular", "korvet-fast topic create solo --partitions 1", 0, (), "1 partitions"),
    # Records.
    Step("keys", r"printf 'a:1\nb:2\n' | korvet-fast produce orders --key-separator :", 0, ("2 records stored",)),
    Step(
        "a key, a header", "echo hi | korvet-fast produce orders --key k --header source=web", 0, ("1 record stored",)
    ),
    Step("a template", r"korvet-fast consume orders --until-end -f '%k=%s\n'", 0, ("^a=1$", "^b=2$", "^k=hi$")),
    Step("JSON", "korvet-fast consume orders --until-end --output json", 0, (r'\["source", "web"\]',)),
    Step("from a time", "korvet-fast consume orders --until-end --from 2020-01-01T00:00:00+00:00", 0, ("^hi$",)),
    Step("an end that is not there", "timeout -s INT 8 korvet-fast consume orders --from 9999999", 124, ("waiting",)),
    Step("head", "korvet-fast consume orders --from earliest | head -1", 0, (r"^\d$|^hi$",), "Traceback|Broken"),
    Step("a full disk at the pipe's end", "korvet-fast consume orders --until-end > /dev/full", 1, ("No space left",)),
    Step("Ctrl-C in produce", COUNTED, 124, ("1,000 records",)),
    # Clients in Python.
    Step("confluent-kafka", PYTHON_CLIENT, 0, ("b'p-1' b'12 EUR' 0",)),
    Step("the asyncio producer", OWN_CLIENT, 0, ("offset 1",)),
    # Groups.
    Step("a group reads", "korvet-fast consume orders --until-end --group g > g.txt; wc -l < g.txt", 0, ("^1003$",)),
    Step("its lag", "korvet-fast group describe g --json", 0, ('"lag": 0',)),
    Step("reset of a live group", LIVE_MEMBER, 1, ("has 1 member", "stop it first"), "UNKNOWN_MEMBER_ID"),
    # The operator's questions.
    Step("the cluster", "korvet-fast cluster info --json", 0, ('"brokers"', '"partitions"')),
    Step("all settings", "korvet-fast config list | wc -l", 0, (r"^([4-9]\d|\d{3})$",)),
    Step("one setting", "korvet-fast config describe log.level", 0, ("default", "korvet_fast=debug")),
    Step("what acks survive", "korvet-fast doctor", 0, ("acks=all", "only copy")),
    Step("the log tells of topics", "cat broker.log", 0, ("topic orders: created, 2 partitions",)),
    Step("other services of a cluster", SETTLED, 0, (), "there is no setting"),
    # Over Redis, its address not on the command line.
    Step(
        "over Redis",
        f"export KORVET_STORE=redis://127.0.0.1:$REDIS\n{OVER_REDIS}",
        0,
        ("3 records stored", "^3$", r"\t3$"),
        "[0-9],[0-9]{3},[0-9]{3} records",
    ),
    # What goes wrong.
    Step("too many partitions", "korvet-fast topic create x --partitions 99999999999999", 2, ("not in the range",)),
    Step("nothing to unset", "korvet-fast topic alter orders --unset nonsense", 1, ("no setting 'nonsense'",)),
    Step("a mistyped command", "korvet-fast topic lst", 2, ("did you mean 'list'",)),
    Step(
        "a mistyped option of a store", "korvet-fast serve --store 'redis://h?namespase=x'", 2, ("'namespace'",), r"\?,"
    ),
    Step("no such topic", "korvet-fast topic describe nope", 1, ("topic 'nope'", "`korvet-fast topic list`")),
    Step("no fewer partitions", "korvet-fast topic alter solo --partitions 1", 1, ("has 1 partition,",)),
    Step(
        "no Redis there",
        "korvet-fast serve --store redis://127.0.0.1:$OTHER_PORT",
        1,
        ("Redis at 127.0.0.1", "is it running there"),
    ),
    Step("an address of others", "korvet-fast serve --listen kafka://10.9.9.9:9092", 1, ("10.9.9.9",), "running there"),
    Step("a port in use", "korvet-fast serve --store file:x --listen kafka://127.0.0.1:$PORT", 1, ("already in use",)),
    Step("nobody there", "korvet-fast topic list --bootstrap 127.0.0.1:$OTHER_PORT", 1, ("127.0.0.1",)),
    Step("a scheme before a bootstrap address", "korvet-fast topic list --bootstrap kafka://127.0.0.1:$PORT", 0),
    Step("the end", "korvet-fast topic delete orders solo payments", 0, ("deleted",)),
)
