"""All attacks on one store against one broker: one after the other, all at once, then a rest without what they left."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from abuse.attack import Attack
from abuse.row import COMBINED, MEMORY, SINGLE, Row
from abuse.scale import Scale
from abuse.scene import Scene
from abuse.table import attacks_on

ATTEMPTS = 3
FILES = 2500  # that may be open beside those of the start: the logs that were touched
BASELINE = 3.0  # seconds without any attack
LEFTOVERS = "3."  # the section of attacks that leave something behind
ALL, REST, NOTHING = "all", "rest", "none"


class Campaign:
    """`say` is told of every row when it is there."""

    def __init__(self, store: str, place: Path, tree: Path, scale: Scale, say: Callable[[Row], None]) -> None:
        self._store, self._place, self._tree, self._scale, self._say = store, place, tree, scale, say
        self._scenes = self._files = 0
        self._running = ExitStack()
        self.rows: list[Row] = []

    def run(self) -> list[Row]:
        """The rows, the one without an attack first."""
        scale, attacks = self._scale, attacks_on(self._store)
        with self._running:
            scene = self._open()
            scene = self._play(scene, [], BASELINE, Row(NOTHING, "no attack", self._store, SINGLE))
            self._files = self.rows[0].files[1]
            for attack in attacks:
                row = Row(attack.number, attack.sentence, self._store, SINGLE)
                row.may_keep = scale.may_keep if attack.number.startswith(LEFTOVERS) else MEMORY
                scene = self._play(scene, [attack], scale.single * attack.times, row)
            if len(attacks) > 1:
                row = Row(ALL, "all of them at the same time", self._store, COMBINED)
                scene = self._play(scene, attacks, scale.combined, row)
                scene = self._rest(scene)
            self._end(scene)
        return self.rows

    def _open(self) -> Scene:
        self._scenes += 1
        place = self._place / f"scene-{self._scenes}"
        return self._running.enter_context(Scene(self._store, place, self._tree, self._scale))

    def _play(self, scene: Scene, attacks: list[Attack], seconds: float, empty: Row) -> Scene:
        for _ in range(ATTEMPTS):
            scene.run(attacks, seconds, row := replace(empty, waits={}, remarks=[]))
            if not row.excused or row.broken():
                break  # else the machine was busy when it mattered: what the broker would have done is not known
        self._keep(row)
        if scene.alive and scene.settled and row.after - row.started_with < MEMORY:
            return scene
        row.remarks.append("the broker had to be replaced")
        self._end(scene)
        return self._open()

    def _rest(self, scene: Scene) -> Scene:
        row = Row(REST, f"{self._scale.rest:.0f} s later, what can be deleted is", self._store, SINGLE)
        scene.clean_up()
        scene.run([], self._scale.rest, row)
        most = 1.2 * row.started_with + self._scale.allowance
        if row.after > most:
            row.remarks.append(f"{row.after >> 20} MiB are left of {row.started_with >> 20} at the start")
        if row.files[1] > self._files + FILES:
            row.remarks.append(f"{row.files[1]} files are open, {self._files} were at the start")
        self._keep(row)
        return scene

    def _end(self, scene: Scene) -> None:
        try:
            if scene.alive and scene.settled:
                scene.check()
        except AssertionError as error:
            self.rows[-1].remarks.append(f"promises were broken: {error}")
        finally:
            self._running.close()

    def _keep(self, row: Row) -> None:
        self.rows.append(row)
        self._say(row)
