"""The page asv makes, made to stand on its own: its scripts come from the package index, not from other sites."""

import re
import shutil
import subprocess
from pathlib import Path

from benchmarks.check.count import ROOT

HERE = Path(__file__).parent
MODULES = ROOT / ".cache" / "asv" / "page" / "node_modules"
_FOREIGN = re.compile(r'(<(?:script|link)\b[^>]*?\b(?:src|href)=")https://[^"]*/([^"/]+)"[^>]*>')
# What asv's page asks other sites for, and the file of a pinned package that is the same (or its readable form).
SCRIPTS = {
    "jquery-3.3.1.min.js": "jquery/dist/jquery.min.js",
    "jquery.flot.min.js": "flot/jquery.flot.js",
    "jquery.flot.time.min.js": "flot/jquery.flot.time.js",
    "jquery.flot.selection.min.js": "flot/jquery.flot.selection.js",
    "jquery.flot.categories.min.js": "flot/jquery.flot.categories.js",
    "jquery.flot.orderBars.js": "flot-orderbars/js/jquery.flot.orderBars.js",
    "stupidtable.min.js": "stupid-table-plugin/stupidtable.min.js",
    "md5.min.js": "blueimp-md5/js/md5.min.js",
    "bootstrap.min.js": "bootstrap/dist/js/bootstrap.min.js",
    "bootstrap.min.css": "bootstrap/dist/css/bootstrap.min.css",
}


def settle(html: Path) -> None:
    """Have the page in this directory use files of its own. Raises `KeyError` for a script that is not known here."""
    modules = _install()
    for path in SCRIPTS.values():
        target = html / "scripts" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(modules / path, target)
    fonts = "bootstrap/dist/fonts"  # the style sheet asks for them
    shutil.copytree(modules / fonts, html / "scripts" / fonts, dirs_exist_ok=True)
    index = html / "index.html"
    index.write_text(_FOREIGN.sub(_own, index.read_text()))


def _own(found: re.Match[str]) -> str:
    start, name = found.groups()
    return f'{start}scripts/{SCRIPTS[name]}"' + (' rel="stylesheet">' if name.endswith(".css") else ">")


def _install() -> Path:
    place = MODULES.parent
    place.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, place / name)
    if not all((MODULES / path).exists() for path in SCRIPTS.values()):
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit("npm is missing: the page needs six packages of JavaScript")
        subprocess.run([npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"], cwd=place, check=True)
    return MODULES
