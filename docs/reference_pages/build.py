"""`./dev docs`: builds the site. A warning, such as a link to nothing, is an error."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from sphinx.cmd.build import build_main

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "site"


def build(to: Path, *, fresh: bool = False, jobs: str = "1") -> int:
    """Sphinx's exit code. to: the folder of the site; what Sphinx remembers lies beside it. fresh: all pages anew."""
    words = ["-q", "-W", "--keep-going", "-j", jobs, "-b", "html", "-d", f"{to}.made"]
    return build_main([*words, *(["-E", "-a"] if fresh else []), str(ROOT / "docs"), str(to)])


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="./dev docs", description=__doc__)
    parser.add_argument("--to", type=Path, default=SITE, metavar="FOLDER", help="where the site goes (build/site)")
    parser.add_argument("--fresh", action="store_true", help="make all pages anew, not only those that changed")
    parser.add_argument("--open", action="store_true", help="open it in a browser")
    given = parser.parse_args(arguments)
    to: Path = given.to.resolve()
    if code := build(to, fresh=given.fresh):
        return code
    print(to / "index.html")
    if given.open:
        webbrowser.open((to / "index.html").as_uri())
    return 0


if __name__ == "__main__":
    sys.exit(main())
