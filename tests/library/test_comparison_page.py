"""docs/comparison.md and the README compare by figures that stand in bench/README.md, and name commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.kafka.command import PARTS

ROOT = Path(__file__).resolve().parents[2]
MEASURED = re.sub(r"[*,]", "", (ROOT / "bench" / "README.md").read_text())
TABLES = {
    "docs/comparison.md": ("Where it is faster than Kafka, measured", "Where it is slower, measured",
                           "Beside NATS JetStream", "Beside Spark's own Kafka source"),
    "README.md": ("How fast",),
}  # fmt: skip


def figures(page: str) -> list[str]:
    """Of the two columns that compare, without units."""
    text, found = (ROOT / page).read_text(), []
    for heading in TABLES[page]:
        part = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
        for row in re.findall(r"^\| [^|]+\|([^|]+)\|([^|]+)\|", part, re.MULTILINE):
            found += [number.replace(",", "") for cell in row for number in re.findall(r"\d[\d,.]*", cell)]
    return [number for number in found if number != "4.3.1"]


@pytest.mark.parametrize("page", TABLES)
def test_every_figure_was_measured(page: str) -> None:
    found = figures(page)
    assert len(found) >= 12
    missing = [number for number in found if not re.search(rf"(?<![\d.]){re.escape(number)}(?![\d]|\.\d)", MEASURED)]
    assert missing == []


def test_every_part_of_the_bench_exists() -> None:
    named = set(re.findall(r"`\./dev bench kafka ([a-z]+)`", (ROOT / "docs" / "comparison.md").read_text()))
    assert len(named) > 6 and named <= set(PARTS)
