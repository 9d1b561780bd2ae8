"""The table of `./dev nightly` against the verbs that it runs: their options, their seeds, and `dev` itself."""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from differential.__main__ import main as differential_main
from jepsen.__main__ import _chosen
from jepsen.__main__ import main as jepsen_main
from jepsen.crash.faults import Fault, Variant
from jepsen.crash.runs import BY_NAME, Case
from jepsen.mutation.mutant import all_mutants
from jepsen.nightly.machine import argv_of
from jepsen.nightly.plan import Plan
from jepsen.nightly.state import State
from jepsen.nightly.table import LIVE, works
from jepsen.nightly.work import Command, Slice, Work
from jepsen.swarm import TURNS
from tests.lint.test_dev_door import ROOT, VERBS
from tests.parsers.fuzz import main as fuzz_parsers_main
from tests.run import main as run_tests
from tests.scenarios.node_fuzz import main as fuzz_main
from tests.spark.versions import main as spark_versions_main

MUTANTS = [mutant.name for mutant in all_mutants()]
WORKS = works(Path("out/nightly"), MUTANTS, processes=2)
SHORT = {"setup", "demo", "check", "proto", "docs", "sim", "bench", "applications", "nightly"}  # verbs of no nights


def rounds(count: int) -> list[Slice]:
    """All slices of so many rounds; the commit changes in the middle of each."""
    plan, found = Plan(WORKS, State()), list[Slice]()
    for number in range(count):
        if plan.is_done:
            plan.begin_round()
        for step in range(10_000):
            if step == 100:
                plan.adopt(f"commit {number}")
            if (one := plan.next()) is None:
                break
            plan.note(one, 60.0, [], "", "")
            found.append(one)
    assert plan.is_done
    return found


class Parsed(Exception):
    """In place of what a verb does after it has read its options."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options


def parsed(command: Command, patch: pytest.MonkeyPatch) -> argparse.Namespace:
    """By the verb's own parser. Raises SystemExit if that refuses the command."""
    parse_args = argparse.ArgumentParser.parse_args

    def stop(self: argparse.ArgumentParser, args: Sequence[str] | None = None) -> argparse.Namespace:
        raise Parsed(parse_args(self, args))

    with patch.context() as here:
        here.setattr(argparse.ArgumentParser, "parse_args", stop)
        here.setattr(sys, "argv", ["dev", *command[1:]])
        try:
            other = {
                "fuzz": fuzz_main,
                "fuzz-parsers": fuzz_parsers_main,
                "spark-versions": spark_versions_main,
                "differential": lambda: differential_main([*command[1:]]),
                "test": lambda: run_tests([*command[1:]]),
            }
            other.get(command[0], lambda: jepsen_main([*command]))()
        except Parsed as done:
            return done.options
    raise AssertionError(f"{command[0]} has read no options")


ROUND = rounds(1)


@pytest.mark.parametrize("work", WORKS, ids=[work.name for work in WORKS])
def test_the_verb_understands_every_command(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = [one.command for one in ROUND if one.kind == work.name]
    assert commands
    for command in commands:
        parsed(command, monkeypatch)


def test_a_refused_command_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (("swarm", "--frist", "1"), ("fuzz", "--frist", "1"), ("sing",)):
        with pytest.raises(SystemExit):
            parsed(command, monkeypatch)


def test_no_command_comes_twice_but_those_of_mutants_and_tests() -> None:
    """A mutant and a test are tried anew in every round; whatever has seeds or inputs has others."""
    commands = [one.command for one in rounds(3) if one.kind not in ("mutants", "tests", "spark-versions")]
    assert len(set(commands)) == len(commands)


def test_no_simulation_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed of more virtual seconds begins like the same seed of fewer."""
    seen = set[tuple[str, int]]()
    for one in rounds(2):
        if one.command[0] == "swarm":
            options = parsed(one.command, monkeypatch)
            seeds = {(TURNS[turn % len(TURNS)], options.first + turn) for turn in range(options.seeds)}
            assert not seeds & seen and len(seeds) == one.count
            seen |= seeds
    assert {profile for profile, _ in seen} == set(TURNS)


def test_no_input_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = defaultdict[str, int](int)
    for one in ROUND:
        if one.kind.startswith("fuzz"):
            options = parsed(one.command, monkeypatch)
            first = options.seed if one.kind == "fuzz" else options.first
            assert first >= ends[one.kind]
            ends[one.kind] = first + (getattr(options, "each", None) or options.inputs)


def test_a_round_tries_every_mutant_every_workload_and_every_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, swept, lived = list[str](), list[str](), list[str]()
    for one in ROUND:
        options = parsed(one.command, monkeypatch) if one.kind in ("mutants", "crash-sweep", "live") else None
        if one.kind == "mutants" and options:
            tried += options.names
        if one.kind == "crash-sweep" and options:
            swept += options.workload
        if one.kind == "live" and options:
            lived.append(options.scenario or LIVE[0])
    assert set(tried) == set(MUTANTS) and set(lived) == set(LIVE) and len(lived) == len(LIVE)
    assert set(swept) == set(BY_NAME)


def test_a_crash_sweep_of_two_workloads_runs_these_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = _chosen(parsed(("crash-sweep", "--seed", "3", "--workload", "roll", "--workload", "append"), monkeypatch))
    cases = [Case(name, 1, "a.py:1:sync", Fault.KILL, 3, next(iter(Variant))) for name in BY_NAME]
    assert sorted(case.workload for case in cases if chosen.wants(case)) == ["append", "roll"]
    assert chosen.is_replay and (chosen.first, chosen.seeds) == (3, 1), "what a part has not reached is no shortfall"


def test_every_verb_of_dev_that_takes_hours_is_in_the_table() -> None:
    assert {one.command[0] for one in ROUND} | SHORT == set(VERBS)
    assert not {one.command[0] for one in ROUND} & SHORT


def test_verbs_are_run_as_dev_runs_them() -> None:
    blocks = re.findall(r"^    ([a-z |-]+)\)\n(.*?);;$", (ROOT / "dev").read_text(), re.MULTILINE | re.DOTALL)
    by_verb = {verb: re.search(r'"\$python" -m (\S+)', block) for verbs, block in blocks for verb in verbs.split(" | ")}
    for verb in {one.command[0] for one in ROUND}:
        found = by_verb[verb]
        assert found is not None and argv_of((verb,))[:3] == [sys.executable, "-m", found[1]]
