"""What MkDocs does with this project: pages that stand elsewhere in the tree, and links to what is no page."""

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent

# Files outside of docs/ that are pages of the site too.
ELSEWHERE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/README.md": "examples.md",
    "benchmarks/README.md": "measuring.md",
    "benchmarks/spark/README.md": "measuring-spark.md",
    **{
        f"examples/{each.parent.name}/README.md": f"example-{each.parent.name}.md"
        for each in ROOT.glob("examples/*/README.md")
    },
}
# GitHub draws these; what would draw them here is fetched from elsewhere, and the table below each says the same.
DIAGRAM = re.compile(r"^```mermaid\n.*?^```\n", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """MkDocs calls it with the files of docs/; adds those that stand elsewhere."""
    for path, page in ELSEWHERE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """MkDocs calls it with the text of each page; links lead to its pages, or become the words they had."""
    sources = {page: path for path, page in ELSEWHERE.items()}
    here = PurePosixPath(sources.get(page.file.src_uri, f"docs/{page.file.src_uri}"))

    def rewrite(link: re.Match[str]) -> str:
        image, words, target, anchor = link.groups()
        path = _normal(here.parent / target)
        if path in ELSEWHERE:
            return f"[{words}]({ELSEWHERE[path]}{anchor or ''})"
        if path.startswith("docs/"):
            return f"{image}[{words}]({path.removeprefix('docs/')}{anchor or ''})"
        return words if (ROOT / path).exists() else link[0]  # a file of the source; what is not there fails the build

    return LINK.sub(rewrite, DIAGRAM.sub("", markdown))


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)
