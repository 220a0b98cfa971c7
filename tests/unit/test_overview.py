"""docs/images/overview.svg is what its source draws."""

from docs.overview import FILE, draw


def test_the_picture_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == str(draw()), "make diagrams"
