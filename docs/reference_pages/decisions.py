"""The list of decisions. Their pages are in no tree: 150 entries at the side of each page would hide the others."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "decisions"
ORPHAN = "---\norphan: true\n---\n"  # for Sphinx: not a page that was forgotten


def page() -> str:
    """Markdown: the newest first."""
    paths = sorted(FOLDER.glob("*.md"), reverse=True)
    return "".join(f"- [{_title(path)}](decisions/{path.name})\n" for path in paths)


def _title(path: Path) -> str:
    return path.read_text().partition("\n")[0].removeprefix("# ")
