"""`python -m jepsen nightly`: its options, its exit codes, and what it prints.

Exit code 0: nothing was found; 1: something was, in this night or earlier, and nobody has said that it is fixed; 2: bad
usage, a state that cannot be read, or another night in the same folder.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from jepsen.mutation.mutant import all_mutants
from jepsen.nightly.files import STATE, Busy, locked, read_state, set_aside, write_state, write_whole
from jepsen.nightly.machine import RealMachine, argv_of, commit_of_tree, date_now
from jepsen.nightly.night import End, night, verdict_of
from jepsen.nightly.plan import Plan
from jepsen.nightly.report import left_line, page
from jepsen.nightly.state import Progress, State, Unreadable
from jepsen.nightly.table import works
from jepsen.nightly.work import Command, Work

FOLDER = Path("out/nightly")
REPORT = "report.md"
REFUSED = 2
MINUTES_LEAST = 0.01

MakeWorks = Callable[[Path, Sequence[str], int], Sequence[Work]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--minutes", type=_minutes, metavar="N",
        help="begin no slice later than this; the last one ends by itself (default: until every kind is done once)",
    )  # fmt: skip
    parser.add_argument("--only", nargs="+", default=[], metavar="KIND", help="only these kinds of work")
    parser.add_argument(
        "--fresh", action="store_true", help="forget what was done and found (it is set aside); seeds go on upwards"
    )
    parser.add_argument("--list", action="store_true", help="how far each kind is, and its next command; runs nothing")
    parser.add_argument(
        "--fixed", nargs="+", type=int, default=[], metavar="NUMBER", help="these findings are fixed now; runs nothing"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help=f"default {FOLDER / REPORT}")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, metavar="DIR", help=f"of the state and all outputs (default {FOLDER})"
    )
    parser.add_argument("--processes", type=_processes, default=2, help="of each verb that has several (default 2)")


def nightly(
    options: argparse.Namespace, make_works: MakeWorks = works, argv: Callable[[Command], list[str]] = argv_of
) -> int:
    """The exit code."""
    table = make_works(options.folder, [mutant.name for mutant in all_mutants()], options.processes)
    names = [work.name for work in table]
    if unknown := [name for name in options.only if name not in names]:
        return _refuse(f"--only: {unknown[0]!r} is none of {', '.join(names)}")
    try:
        if options.list:
            return _list(options, table)
        with locked(options.folder):
            if options.fixed:
                return _fix(options, table)
            end, left_minutes, code = _run(options, table, argv)
    except Busy as error:
        return _refuse(str(error))
    except Unreadable as error:
        return _refuse(f"{options.folder / STATE}: {error}. Nothing was changed. Move it away, or say --fresh.")
    if end is End.NEW_COMMIT:
        _begin_again(options, left_minutes)
    return code


def _run(
    options: argparse.Namespace, table: Sequence[Work], argv: Callable[[Command], list[str]]
) -> tuple[End, float | None, int]:
    """Why it ended, the minutes that are left of those that were asked for, and the exit code. Raises Unreadable."""
    state = _fresh(options.folder) if options.fresh else read_state(options.folder)
    plan = Plan(table, state or State(), options.only)
    machine = RealMachine(options.folder, _report_of(options), argv)
    began_s = machine.seconds()
    try:
        end = night(plan, machine, options.minutes)
    finally:
        machine.close()
    left = None if options.minutes is None else max(0.0, options.minutes - (machine.seconds() - began_s) / 60)
    machine.say(f"{end.value}; {verdict_of(plan.state.open)}; report: {_report_of(options)}")
    return end, left, 1 if plan.state.open else 0


def _list(options: argparse.Namespace, table: Sequence[Work]) -> int:
    """Raises Unreadable."""
    plan = Plan(table, read_state(options.folder) or State(), options.only)
    for work in plan.chosen:
        print(left_line(plan, work).replace("`", ""))
        print(f"    {work.covers}")
    print(f"{verdict_of(plan.state.open)}")
    return 0


def _fix(options: argparse.Namespace, table: Sequence[Work]) -> int:
    """Raises Unreadable."""
    state = read_state(options.folder) or State()
    numbers = [finding.number for finding in state.open]
    if unknown := [number for number in options.fixed if number not in numbers]:
        return _refuse(f"--fixed: finding {unknown[0]} is not open; open are: {', '.join(map(str, numbers)) or 'none'}")
    commit = commit_of_tree(_report_of(options))
    for finding in state.open:
        if finding.number in options.fixed:
            finding.fixed = commit
    write_state(options.folder, state)
    plan = Plan(table, state)
    write_whole(_report_of(options), page(plan, date_now()))
    print(f"fixed at {commit}: {', '.join(map(str, options.fixed))}; open: {len(state.open)}")
    return 0


def _fresh(folder: Path) -> State:
    """Nothing is done and nothing found, but the seeds go on."""
    try:
        before = read_state(folder) or State()
    except Unreadable as error:
        print(f"{folder / STATE}: {error}; seeds begin with the first ones again")
        before = State()
    if aside := set_aside(folder):
        print(f"what was done and found is in {aside} now")
    return State(works={name: Progress(next=progress.next) for name, progress in before.works.items()})


def _begin_again(options: argparse.Namespace, minutes: float | None) -> None:
    """In place of this process: its modules are those of the commit before. Does not return."""
    again = ["nightly", "--folder", str(options.folder), "--processes", str(options.processes)]
    again += ["--report", str(_report_of(options))]
    again += [] if minutes is None else ["--minutes", str(max(minutes, MINUTES_LEAST))]
    again += ["--only", *options.only] if options.only else []
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "jepsen", *again])


def _report_of(options: argparse.Namespace) -> Path:
    report: Path = options.report or options.folder / REPORT
    return report


def _refuse(why: str) -> int:
    print(why, file=sys.stderr)
    return REFUSED


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of minutes above 0")
    return minutes


def _processes(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)
