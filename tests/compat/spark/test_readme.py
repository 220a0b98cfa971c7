"""docs/spark-pipeline.md and the README's section about Spark, run as they stand."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import parquet

from documents import Reader, alone, examples
from requirement import require


@pytest.fixture(autouse=True)
def alone_on_its_ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with alone(tmp_path_factory.getbasetemp().parent):
        yield


@pytest.mark.timeout(1200)  # three times Spark is started
def test_a_pipeline_on_spark(tmp_path: Path) -> None:
    require("java")
    commands, consume = examples("docs/spark-pipeline.md", "sh")
    (example,) = examples("docs/spark-pipeline.md", "python")
    assert consume.printed is not None
    with Reader(tmp_path) as reader:
        reader.serve("korvet-fast serve")
        reader.run(commands)
        assert parquet.read_table(tmp_path / "flights-parquet").num_rows == 3
        reader.run(example)
        printed = reader.run(consume._replace(printed=None))  # groups come in any order
        assert sorted(printed.splitlines()) == sorted(consume.printed.splitlines())


@pytest.mark.timeout(1200)
def test_the_readme_shows_a_topic_in_spark(tmp_path: Path) -> None:
    require("java")
    *_, example = examples("README.md", "python")
    with Reader(tmp_path) as reader:
        reader.serve("korvet-fast serve")
        reader.shell("printf 'one\\ntwo\\n' | korvet-fast produce orders")
        rows = [line.split("|")[1:-1] for line in reader.run(example).splitlines() if line.startswith("|")]
    assert [[cell.strip() for cell in row] for row in rows[1:]] == [["0", "one"], ["1", "two"]]


@pytest.mark.timeout(1200)
def test_spark_reference(tmp_path: Path) -> None:
    """docs/spark.md: its pieces as one program, after the lines that make a session and say where the broker is."""
    require("java")
    pieces = [block.text for block in examples("docs/spark.md", "python")]
    before = (
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').getOrCreate()\n"
        "broker = {'kafka.bootstrap.servers': '127.0.0.1:9092'}\n"
    )
    (block,) = examples("docs/spark.md", "python")[:1]
    with Reader(tmp_path) as reader:
        reader.serve("korvet-fast serve")
        reader.shell("printf 'one\\ntwo\\n' | korvet-fast produce flights")
        reader.run(block._replace(text=before + "".join(pieces)))
        assert reader.shell("korvet-fast consume copy --until-end") == "one\ntwo\n"
