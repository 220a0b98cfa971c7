"""The points of a group's graph."""

from korvet_fast.core.groups.lag import SAMPLES, UNKNOWN
from korvet_fast.wire.http.page.graph import HEIGHT, WIDTH, draw


def test_one_sample_is_no_graph() -> None:
    assert draw([]) is None
    assert draw([UNKNOWN, 5, UNKNOWN]) is None


def test_all_points_are_inside_and_the_last_is_at_the_right() -> None:
    graph = draw([at * at for at in range(SAMPLES)])
    assert graph is not None
    (line,) = graph.lines
    points = [tuple(map(float, point.split(","))) for point in line.split()]
    assert len(points) == SAMPLES
    assert points[-1] == (WIDTH - 2, 2.0)
    assert points[0] == (2.0, HEIGHT - 2)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
    assert graph.words == "lag of the last 20 min: 0 to 14,161, now 14,161"


def test_a_gap_parts_the_line_and_no_lag_is_a_flat_one() -> None:
    graph = draw([0, 0, UNKNOWN, 0])
    assert graph is not None
    assert [len(line.split()) for line in graph.lines] == [2, 1]
