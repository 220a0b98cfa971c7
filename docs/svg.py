"""Pictures for the documentation, as SVG: rectangles, lines and text on a white card, without a drawing program."""

from html import escape
from pathlib import Path

INK, QUIET, FILL, EDGE, OURS, OTHERS = "#1f2430", "#5b6474", "#f3f5f9", "#c3cad8", "#2f6fde", "#a9b1c0"
FONT = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"


class Picture:
    """A card of so many pixels; what is drawn later lies on top. `title`: what is read aloud for the picture."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" style="{FONT}">\n<title>{escape(title)}</title>'
        )
        self._shapes: list[str] = []
        self.rectangle(0, 0, width, height, fill="#ffffff")

    def rectangle(self, x: float, y: float, width: float, height: float, fill: str = FILL, edge: str = "none") -> None:
        """A rectangle with round corners."""
        self._shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{fill}" stroke="{edge}"/>'
        )

    def text(self, x: float, y: float, words: str, size: int = 14, color: str = INK, **attributes: str) -> None:
        """One line of text; `y` is its baseline. `attributes`: SVG's own, `_` for `-`."""
        more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
        self._shapes.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}"{more}>{escape(words)}</text>')

    def arrow(self, x: float, y: float, end: float, both: bool = False) -> None:
        """A line straight down from `y` to `end`, with a head there, and one at its start if it goes both ways."""
        self._shapes.append(f'<path d="M{x:g} {y:g}V{end:g}" stroke="{QUIET}" stroke-width="1.5"/>')
        for tip, side in ((end, -1), (y, 1)) if both else ((end, -1),):
            self._shapes.append(f'<path d="M{x:g} {tip:g}l-4 {side * 7}h8z" fill="{QUIET}"/>')

    def write(self, path: Path) -> None:
        """Write the picture into a file."""
        path.write_text(str(self), encoding="utf-8")

    def __str__(self) -> str:
        return "\n".join([self._head, *self._shapes, "</svg>\n"])
