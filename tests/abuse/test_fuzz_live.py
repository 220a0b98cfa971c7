"""Whole requests of all routes, made worse, at a live broker: others are served all the while, and it does not stumble.

Ten seconds in the suite; `make fuzz-live` sets KORVET_TEST_FUZZ_SECONDS=60. KORVET_TEST_FUZZ_SEED repeats a run.
"""

import os
import random
import shutil
import tempfile
from pathlib import Path

import pytest

from abuse.attack import ATTACKS
from abuse.fuzz.corpus import built, by_route, recorded
from abuse.fuzz.live import NOTE, NUMBER, read_sent
from abuse.fuzz.mutation import MUTATIONS, mutate
from abuse.row import COMBINED, Row
from abuse.scale import SHORT, tree
from abuse.scene import Scene
from abuse.sheet import line
from korvet_fast.wire.kafka.routes import ROUTES

SECONDS = float(os.environ.get("KORVET_TEST_FUZZ_SECONDS", "10"))
AROUND = 0.5  # seconds before a long wait in which its cause was sent


@pytest.mark.timeout(300 + 2 * SECONDS)
@pytest.mark.parametrize("store", ["files", "redis"])
def test_requests_made_worse_harm_nobody(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = os.environ.get("KORVET_TEST_FUZZ_SEED") or str(random.randrange(2**32))
    print(f"KORVET_TEST_FUZZ_SEED={seed}")
    sent = tmp_path / "sent"
    sent.mkdir()
    monkeypatch.setenv("KORVET_TEST_FUZZ_SEED", seed)
    monkeypatch.setenv("KORVET_TEST_FUZZ_SENT", str(sent))
    row = Row(NUMBER, f"seed {seed}", store, COMBINED)
    with Scene(store, tmp_path / "scene", tree(), SHORT, large=False) as scene:
        scene.run([ATTACKS[NUMBER]], SECONDS, row)
        print(line(row))
        broken = row.broken()
        if scene.alive and scene.settled:
            scene.check()
        log = "".join(scene.broker.log)[-20_000:]
    if broken:
        place = keep_guilty(sent, scene.long_waits(COMBINED), seed)
        (place / "broker.log").write_text(log)
        message = f"python -m abuse.fuzz.replay {place} PORT sends it again"
        pytest.fail("\n".join([*broken, message, f"KORVET_TEST_FUZZ_SEED={seed}"]))


def keep_guilty(sent: Path, waits: list[tuple[float, float]], seed: str) -> Path:
    """A new directory with what was sent before and during those waits (start, end); all of it if that is nothing."""
    place = Path(tempfile.mkdtemp(prefix=f"fuzz-live-{seed}-"))
    everything = {(file.name, n): each for file in sent.iterdir() for n, each in enumerate(read_sent(file))}
    near = {
        key: (when, burst)
        for key, (when, burst) in everything.items()
        if any(start - AROUND <= when <= end for start, end in waits)
    }
    for (name, number), (_, burst) in (near or everything).items():
        (place / f"{name}-{number:06}.bin").write_bytes(burst)
    return place


def test_what_was_sent_around_a_long_wait_is_kept(tmp_path: Path) -> None:
    notes = ((1.0, b"early"), (9.7, b"cause"), (10.5, b"during"), (12.0, b"late"))
    (tmp_path / "sent-0-0").write_bytes(b"".join(NOTE.pack(when, len(burst)) + burst for when, burst in notes))
    kept = [keep_guilty(tmp_path, waits, "test") for waits in ([(10.0, 11.0)], [])]
    try:
        found = [[file.read_bytes() for file in sorted(place.iterdir())] for place in kept]
        assert found == [[b"cause", b"during"], [b"early", b"cause", b"during", b"late"]]
    finally:
        for place in kept:
            shutil.rmtree(place)


def test_every_route_is_mutated() -> None:
    frames = recorded() + built()
    assert set(by_route(frames)) == set(ROUTES)
    versions = {(int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")) for frame in frames}
    assert versions >= {(k, v) for k, route in ROUTES.items() for v in range(route.lowest, route.highest + 1)}
    assert len(recorded()) > 100


def test_a_seed_always_gives_the_same_requests() -> None:
    frames = by_route(recorded() + built())
    first, second = ([mutate(frames, chance) for _ in range(500)] for chance in (random.Random(3), random.Random(3)))
    assert first == second


@pytest.mark.parametrize("mutation", dict.fromkeys(MUTATIONS), ids=lambda mutation: mutation.__name__)
def test_every_mutation_changes_something(mutation: object) -> None:
    chance = random.Random(5)
    frames = recorded() + built()
    changed = 0
    for _ in range(200):
        one, other = chance.choice(frames), chance.choice(frames)
        changed += mutation(one, other, chance) != one  # type: ignore[operator]
    assert changed > 100
