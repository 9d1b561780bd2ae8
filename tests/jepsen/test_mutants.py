"""The mutants are complete: each diff applies, each has a killer and a line in the table; a few are killed here."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from jepsen.crash.runs import BY_NAME
from jepsen.mutation.killers import finding_of, is_assertion
from jepsen.mutation.mutant import KINDS, ROOT, Mutant, all_mutants, apply, copy_tree
from jepsen.mutation.table import SURVIVED, TABLE, Row, read_report, summary, write_report
from jepsen.mutation.trial import run_mutants
from jepsen.sim.plan import PROFILES

MUTANTS = all_mutants()
IDS = [mutant.name for mutant in MUTANTS]


def test_none_is_missing() -> None:
    assert len(MUTANTS) >= 40


@pytest.mark.parametrize("mutant", MUTANTS, ids=IDS)
def test_the_diff_applies(mutant: Mutant) -> None:
    assert apply(mutant, ROOT, only_try=True) == ""


@pytest.mark.parametrize("mutant", MUTANTS, ids=IDS)
def test_its_killer_is_there(mutant: Mutant) -> None:
    assert mutant.what and (mutant.expect or mutant.kind == "test")
    if mutant.kind == "sim":
        assert mutant.profile in ("swarm", *PROFILES)
    elif mutant.kind == "crash":
        assert set(mutant.workloads) <= set(BY_NAME)
    else:
        path, *names = mutant.where.partition("[")[0].split("::")
        assert all(
            re.search(rf"^ *(class|def|async def)? ?{name}\b", (ROOT / path).read_text(), re.M) for name in names
        )


def test_no_two_are_the_same() -> None:
    assert [diff for diff, count in Counter(mutant.diff for mutant in MUTANTS).items() if count > 1] == []


@pytest.mark.parametrize("profile", sorted({mutant.profile for mutant in MUTANTS if mutant.kind == "sim"} - {"swarm"}))
def test_the_profile_of_a_mutant_is_a_class_of_faults(profile: str) -> None:
    """One fault alone would be made for the mutant that it kills."""
    assert len(set(PROFILES[profile])) > 1


# --- the table ---


def test_every_mutant_is_in_the_table_and_was_killed() -> None:
    rows = {row.name: row for row in read_report(TABLE)}
    assert list(rows) == IDS
    for mutant in MUTANTS:
        row = rows[mutant.name]
        assert (row.what, row.killer) == (mutant.what, mutant.killer), "run ./dev mutants NAME --report docs/mutants.md"
        assert row.by != SURVIVED and row.runs <= 200
    assert TABLE.read_text().endswith(summary(list(rows.values())))


def test_the_swarm_kills_half_of_those_that_storage_tests_do_not() -> None:
    """The crash sweep and the tests of storage may kill mistakes of storage instead."""
    left = [mutant for mutant in MUTANTS if mutant.kind == "sim" or not is_of_storage(mutant)]
    by_swarm = [row for row in read_report(TABLE) if row.killer == "sim swarm" and row.by != SURVIVED]
    assert 2 * len(by_swarm) >= len(left)


def is_of_storage(mutant: Mutant) -> bool:
    return all(path.startswith("storage/") for path in re.findall(r"^\+\+\+ b/(\S+)", mutant.diff, re.MULTILINE))


@pytest.mark.parametrize("name", ["report.md", "report.json"])
def test_a_later_run_replaces_its_rows_and_keeps_the_others(name: str, tmp_path: Path) -> None:
    path, known = tmp_path / name, ["01-one", "02-two"]
    one, two = (
        Row("01-one", "first", "sim swarm", SURVIVED, 200, 9),
        Row("02-two", "second", "crash roll", "hole", 1, 1),
    )
    write_report(path, [one, two, Row("00-gone", "none", "sim swarm", "x", 1, 1)], known)
    killed = Row("01-one", "first", "sim swarm", "commit-rule", 3, 5)
    write_report(path, [killed], known)
    assert read_report(path) == [killed, two]


# --- for real ---

SAMPLE = ["01-vote-before-durable", "74-acked-by-one-disk", "96-lines-before-the-name", "98-short-read-served"]
SAMPLE_SEEDS = 3


@pytest.mark.timeout(300)
def test_a_sample_is_killed(tmp_path: Path) -> None:
    """Of each kind of killer at least one. The whole folder takes an hour: `./dev mutants`."""
    told: list[str] = []
    report = tmp_path / "report.json"
    assert run_mutants(SAMPLE, SAMPLE_SEEDS, 1, report, say=told.append) == 0, told
    assert [row.name for row in read_report(report)] == SAMPLE
    assert {mutant.kind for mutant in MUTANTS if mutant.name in SAMPLE} == set(KINDS)


# --- what counts ---


def test_a_diff_that_does_not_apply_is_reported(tmp_path: Path) -> None:
    copy_tree(tmp_path)
    assert apply(MUTANTS[0], tmp_path) == ""
    assert "no longer applies" in apply(MUTANTS[0], tmp_path)


def test_an_unknown_name_is_refused() -> None:
    told: list[str] = []
    assert run_mutants(["99-nothing"], 1, 1, say=told.append) == 1
    assert told == ["no such mutant: 99-nothing"]


def test_a_crash_kills_no_mutant() -> None:
    crash = {"name": "node-crashed", "text": "", "at_ns": 1}
    lost = {"name": "lost-write", "text": "", "at_ns": -1}
    assert finding_of({"verdict": "INVALID", "findings": [crash]}) == ""
    assert finding_of({"verdict": "INVALID", "findings": [crash, lost]}) == "lost-write"
    assert finding_of({"verdict": "BROKEN", "findings": [lost]}) == ""


@pytest.mark.parametrize(
    ("told", "counts"),
    [
        ("E   assert 1 == 2\n\ntests/storage/test_log.py:12: AssertionError", True),
        ("E   Failed: DID NOT RAISE\n\ntests/storage/test_log.py:12: Failed", True),
        ("tests/storage/test_log.py:12: \nE   AssertionError\nstorage/log.py:3: AssertionError", False),
        ("E   KeyError: 1\n\ntests/storage/test_log.py:12: KeyError", False),
        ("", False),
    ],
    ids=["assertion", "no exception", "assertion of production", "another error", "nothing"],
)
def test_only_an_assertion_of_the_test_counts(told: str, counts: bool) -> None:
    assert is_assertion(told) == counts
