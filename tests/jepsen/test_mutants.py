"""The mutants are complete: none is missing, each diff applies, each names what should catch it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jepsen.mutate import Mutant, all_mutants, apply, copy_tree, killer
from jepsen.sim.plan import PROFILES

MUTANTS = all_mutants()


def test_none_is_missing() -> None:
    assert len(MUTANTS) == 14


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_the_diff_applies(mutant: Mutant, tmp_path: Path) -> None:
    copy_tree(tmp_path)
    assert apply(mutant, tmp_path) == ""
    assert mutant.expect and mutant.profile in ("swarm", *PROFILES)


def test_a_diff_that_does_not_apply_is_reported(tmp_path: Path) -> None:
    copy_tree(tmp_path)
    assert apply(MUTANTS[0], tmp_path) == ""
    assert "no longer applies" in apply(MUTANTS[0], tmp_path)


def test_a_crash_kills_no_mutant() -> None:
    crash = {"name": "node-crashed", "text": "", "at_ns": 1}
    lost = {"name": "lost-write", "text": "", "at_ns": -1}
    assert killer({"verdict": "INVALID", "findings": [crash]}) == ""
    assert killer({"verdict": "INVALID", "findings": [crash, lost]}) == "lost-write"
    assert killer({"verdict": "BROKEN", "findings": [lost]}) == ""
