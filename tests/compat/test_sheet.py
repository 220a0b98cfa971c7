"""The page of the matrix: what passed, what did not, what cannot be, and that it is drawn from whole runs only."""

import re

from compat.drivers import CLIENTS
from compat.scenarios.table import CONSUMER, EVERYWHERE, LACKS, REFUSED, all_cells, cells
from compat.sheet import LACKING, PAGE, Outcome, complete, draw


def outcomes() -> list[Outcome]:
    return [Outcome(*cell, version=f"{cell.client} 1.0", passed=True) for cell in all_cells()]


def rows(page: str, scenario: str) -> list[list[str]]:
    """The cells of this scenario, in both tables, by client."""
    return [line.split(" | ")[1:] for line in page.splitlines() if line.startswith(f"| {scenario} |")]


def test_a_cell_that_failed_over_one_layout_is_a_cross_in_its_table_only() -> None:
    found = outcomes()
    cell = ("acks 0, 1 and all", "confluent", "batches")
    failed = [each._replace(passed=False) if each[:3] == cell else each for each in found]
    embedded, redis = rows(draw(failed), "acks 0, 1 and all")
    assert (embedded[0], redis[0]) == ("✓", "✗")
    assert set(redis[1:]) == {"✓", "✓ |"}


def test_what_a_client_lacks_is_explained() -> None:
    page = draw(outcomes())
    for row in rows(page, CONSUMER):
        mark, number = row[1].split()
        assert mark == LACKING
        assert f"\n{number}. {LACKS['kafka_python'][CONSUMER]}\n" in page


def test_what_is_refused_as_by_kafka_is_explained() -> None:
    page = draw(outcomes())
    ((*_, kcat, _, _, _, _, _),) = rows(page, "SASL SCRAM-SHA-256")
    mark, number = kcat.split()
    assert mark == "✗"
    assert f"\n{number}. {REFUSED['kcat']['SASL SCRAM-SHA-256']}\n" in page


def test_only_a_whole_run_is_complete() -> None:
    found = outcomes()
    assert complete(found)
    assert not complete(found[1:])


def test_as_many_turns_as_there_are_stores_play_every_cell() -> None:
    turns = [cells(full=False, turn=turn) for turn in range(len(EVERYWHERE))]
    assert {cell for found in turns for cell in found} == set(cells(full=True))
    assert len({len(found) for found in turns}) == 1


def test_programs_over_kafka_are_named_in_the_versions_that_are_tested() -> None:
    page = draw(outcomes())
    (kafka,) = re.findall("<kafka.version>(.+)</kafka.version>", (CLIENTS / "java_programs" / "pom.xml").read_text())
    pins = (CLIENTS.parents[2] / "requirements" / "tools.in").read_text()
    for program in ("Kafka Connect", "MirrorMaker 2", "Kafka Streams"):
        assert f"| {program} {kafka}" in page
    faust, quix = re.findall("==(.+)", pins)
    assert f"faust-streaming {faust})" in page
    assert f"Quix Streams {quix} |" in page
    assert PAGE.read_text().endswith(page[page.index("## Programs") :])
