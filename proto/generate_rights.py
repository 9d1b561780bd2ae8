"""Writes the table of rights into docs/security.md: `python proto/generate_rights.py [--check]`.

It comes from `quorumlog/security/required/table.py`, which is what a node asks (CVE-2026-41115: a page said READ where
the code asked for DESCRIBE). --check exits with 1 if the page is stale.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- rights: written by ./dev proto -->\n", "<!-- end of rights -->\n"


def page(text: str) -> str:
    """The page with the table made anew. Raises ValueError without the two marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has no place for the table of rights: {BEGIN.strip()} and {END.strip()}")
    return "".join([before, begin, *_table(), end, after])


def _table() -> Iterable[str]:
    from quorumlog.messages.services import METHODS
    from quorumlog.security.required.fetch import FetchSessionRights
    from quorumlog.security.required.table import rows

    table = rows(FetchSessionRights())
    yield "| request | rights | which of them |\n| --- | --- | --- |\n"
    for method in METHODS:
        row = table.get(method.request)
        if row is not None:
            needs = ", ".join(map(str, row.needs)) or "none"
            yield f"| {method.name} | {needs} | {row.how} |\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description="Writes the table of rights into docs/security.md.")
    parser.add_argument("--check", action="store_true", help="only compare")
    text = PAGE.read_text()
    fresh = page(text)
    if parser.parse_args(arguments).check:
        if text != fresh:
            print(f"stale: {PAGE.relative_to(ROOT)}; run ./dev proto")
        return int(text != fresh)
    PAGE.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main())
