"""docs/client-options.md has every option of every client, with its default."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from quorumlog.client.options import CommonOptions, ConsumerOptions, ProducerOptions

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "client-options.md").read_text()
ROW = re.compile(r"^\| `(\w+)`(?: \*)? \| `(.*?)` \| \S.*\|$", re.MULTILINE)
COMMON = {field.name for field in fields(CommonOptions)}


@pytest.mark.parametrize(
    ("heading", "kind"), [("All clients", CommonOptions), ("Producer", ProducerOptions), ("Consumer", ConsumerOptions)]
)
def test_each_option_is_shown_with_its_default(heading: str, kind: type[CommonOptions]) -> None:
    shown = dict(ROW.findall(PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]))
    known = {field.name: field.default for field in fields(kind) if kind is CommonOptions or field.name not in COMMON}
    assert MISSING not in known.values()
    assert shown == {name: str(default) or '""' for name, default in known.items()}
