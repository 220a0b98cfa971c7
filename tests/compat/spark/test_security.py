"""Spark over a listener inside TLS: with a certificate, and logged in; `ingest` and `export` with a file of Kafka's."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from pyarrow import parquet
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from broker_process import BrokerProcess
from korvet_fast.cli import root
from korvet_fast.cli.spark_job import explain
from redis_server import free_port

WITHIN = 400.0  # seconds for a Spark to start and do a little
ROWS = 1_000
PASSWORD = "a pear"
Settings = Mapping[str, str]


class World(NamedTuple):
    """A broker without a plain listener that anybody is told of, and what clients are told, by how they come."""

    addresses: Mapping[str, str]
    settings: Mapping[str, Settings]

    def options(self, how: str, **changes: str) -> dict[str, str]:
        """As options of the data source; an underscore is a dot."""
        changed = {name.replace("_", "."): value for name, value in changes.items()}
        security = {f"kafka.{name}": value for name, value in {**self.settings[how], **changed}.items()}
        return {"kafka.bootstrap.servers": self.addresses[how], **security}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("secure")
    (place / "password").write_text(PASSWORD)
    store = ("--store", f"file:{place / 'data'}")
    add = ("user", "add", "ann", "--password-file", str(place / "password"), "--mechanism", "SCRAM-SHA-512", *store)
    for command in (("certs", str(place / "certs")), add):
        assert CliRunner().invoke(root, command).exit_code == 0
    tls, sasl = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    settings = (
        f"ssl.keystore.location={place / 'certs/server.pem'}",
        f"ssl.truststore.location={place / 'certs/ca.pem'}",
        "ssl.client.auth=requested",
        "sasl.enabled.mechanisms=SCRAM-SHA-512",
        "num.partitions=2",
    )
    trusted = {"ssl.truststore.location": str(place / "certs/ca.pem"), "ssl.truststore.type": "PEM"}
    jaas = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password="{PASSWORD}";'
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": jaas}
    shown = {"security.protocol": "SSL", "ssl.keystore.location": str(place / "certs/client.pem")}
    listen = ("--listen", f"kafka+tls://{tls}", "--listen", f"kafka+sasl+tls://{sasl}")
    with BrokerProcess(place / "data", *settings, arguments=listen):
        yield World({"mtls": tls, "scram": sasl}, {"mtls": trusted | shown, "scram": trusted | login})


@pytest.mark.parametrize("how", ["mtls", "scram"])
def test_rows_are_written_read_and_streamed(spark: SparkSession, world: World, tmp_path: Path, how: str) -> None:
    options = world.options(how)
    rows = spark.range(ROWS).selectExpr("CAST(id AS STRING) AS key", "CAST(id * id AS STRING) AS value")
    rows.write.format("korvet").options(**options).option("topic", how).mode("append").save()
    source = {**options, "subscribe": how, "startingOffsets": "earliest"}
    read = spark.read.format("korvet").options(**source).load()
    assert sorted(int(row.value) for row in read.collect()) == [number * number for number in range(ROWS)]
    stream = spark.readStream.format("korvet").options(**source).load()
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
    assert query.awaitTermination(int(WITHIN))
    assert spark.read.parquet(str(tmp_path / "out")).count() == ROWS


def test_who_is_not_let_in_reads_why(spark: SparkSession, world: World) -> None:
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password="apple";'
    for changes, words in (
        ({"sasl_jaas_config": jaas}, "as 'ann': Authentication failed"),
        ({"sasl_mechanism": "PLAIN"}, "sasl.jaas.config cannot be used"),
        ({"ssl_truststore_location": "/nowhere.pem"}, "ssl.truststore.location: /nowhere.pem"),
    ):
        options = {**world.options("scram", **changes), "subscribe": "scram", "startingOffsets": "earliest"}
        with pytest.raises(PySparkException) as failed:
            spark.read.format("korvet").options(**options).load().count()
        assert words in explain(failed.value)


def test_ingest_and_export_take_a_file_of_kafkas_tools(world: World, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in world.settings["scram"].items()))
    (tmp_path / "rows.csv").write_text("id,name\n" + "".join(f"{number},n{number}\n" for number in range(50)))
    connect = ("--bootstrap", world.addresses["scram"], "--command-config", str(config), "--master", "local[2]")
    for command in (
        ("ingest", str(tmp_path / "rows.csv"), "--topic", "loaded", "--key", "id"),
        ("export", "loaded", "--to", "parquet", str(tmp_path / "out")),
    ):
        ran = subprocess.run(
            [sys.executable, "-m", "korvet_fast", *command, *connect], capture_output=True, text=True, timeout=WITHIN
        )
        assert ran.returncode == 0, ran.stderr
        assert PASSWORD not in ran.stdout + ran.stderr
    keys = parquet.read_table(tmp_path / "out", columns=["key"])["key"].to_pylist()
    assert sorted(map(int, keys)) == list(range(50))
