"""The tests that pages of docs may name."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def named_tests() -> set[str]:
    """As `module::function`, or `module::Class` of a state machine. By the text, without importing anything."""
    found = set()
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text()
        names = re.findall(r"^ *(?:async )?def (test_\w+)", text, re.MULTILINE)
        machines = re.findall(r"^class (\w+)\(RuleBasedStateMachine\)", text, re.MULTILINE)
        found.update(f"{path.stem}::{name}" for name in (*names, *machines))
    return found
