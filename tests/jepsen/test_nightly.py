"""`./dev nightly` on a virtual clock: whose turn it is, what is kept, what is told. Nothing is started here."""

from __future__ import annotations

import json
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen.crash.coverage import Coverage
from jepsen.crash.faults import Fault, Variant
from jepsen.crash.runs import Case, Outcome
from jepsen.crash.sweep import _tell_broken
from jepsen.mutation.mutant import Mutant
from jepsen.mutation.trial import Fate
from jepsen.nightly.findings import FINDINGS_MAX, findings_of
from jepsen.nightly.night import End, Ended, Interrupted, night
from jepsen.nightly.plan import LEAST_CHARGE_S, Plan
from jepsen.nightly.report import page
from jepsen.nightly.state import FOUND, MOST_OPEN, PROVED_NOTHING, State, Unreadable, as_text, from_text
from jepsen.nightly.work import STRIDE, Slice, Work, turn_and_row
from jepsen.sim.job import Job
from jepsen.sim.shrink.options import replay
from jepsen.soak.gauges import Finding as SoakFinding
from jepsen.soak.gauges import Gauges
from jepsen.soak.outcome import Outcome as SoakOutcome
from jepsen.swarm import line_of
from tests.parsers import fuzz

DATE = "2026-01-01 00:00:00+00:00"


class Killed(Exception):
    """As kill -9 between two instructions."""


def work(name: str, **other: object) -> Work:
    settings: dict[str, object] = {"unit": "seeds", "whole": 12, "slice": 5, "covers": f"all of {name}"}
    settings["command"] = lambda first, count: (name, "--first", str(first), "--count", str(count))
    return Work(name=name, **{**settings, **other})  # type: ignore[arg-type]  # a table of settings


WORKS = (work("swarm", share=2.0), work("table", whole=7, slice=3, is_table=True), work("fuzz", whole=20, slice=9))


@dataclass
class FakeMachine:
    """A virtual clock. took_s: of a slice. told: its exit code and its output. kept: the text of the state.

    ends_at: the number of the call of `run` (from 1) that raises `how` in its place; 0: none. loses: the call of `keep`
    that is cut off before the new state has its name.
    """

    took_s: Callable[[Slice], float] = lambda _: 60.0
    told: Callable[[Slice], tuple[int | None, Sequence[str]]] = lambda _: (0, ["all is well"])
    commit_now: str = "aaa"
    ends_at: int = 0
    how: type[Exception] = Killed
    loses: int = 0
    kept: str = ""
    ran: list[Slice] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    now_s: float = 0.0
    calls: int = 0
    keeps: int = 0
    after: Callable[[Plan], None] = lambda _: None

    def seconds(self) -> float:
        return self.now_s

    def date(self) -> str:
        return DATE

    def commit(self) -> str:
        return self.commit_now

    def run(self, one: Slice) -> Ended:
        self.calls += 1
        if self.calls == self.ends_at:
            raise self.how
        took_s = self.took_s(one)
        self.now_s += took_s
        self.ran.append(one)
        code, lines = self.told(one)
        return Ended(code=code, took_s=took_s, output=f"slices/{one.label}.txt", lines=lines)

    def keep(self, plan: Plan) -> None:
        self.keeps += 1
        if self.keeps == self.loses:
            raise Killed
        self.kept = as_text(plan.state)
        self.after(plan)

    def say(self, line: str) -> None:
        self.said.append(line)

    def plan(self, works: Sequence[Work] = WORKS, only: Sequence[str] = ()) -> Plan:
        """Of a process that begins now."""
        return Plan(works, from_text(self.kept) if self.kept else State(), only)


def units(ran: Iterable[Slice]) -> dict[str, list[int]]:
    """By kind, in the order in which they ran."""
    found = defaultdict(list)
    for one in ran:
        found[one.kind] += range(one.first, one.first + one.count)
    return found


# --- turns ---

TIMES_S = st.lists(st.floats(LEAST_CHARGE_S, 10_000.0), min_size=1, max_size=30)
KINDS = st.lists(
    st.tuples(st.integers(1, 40), st.integers(1, 6), st.sampled_from((0.5, 1.0, 2.0, 3.0)), st.booleans()),
    min_size=1, max_size=6,
)  # fmt: skip


def drawn_works(kinds: Sequence[tuple[int, int, float, bool]]) -> list[Work]:
    return [
        work(f"kind-{number}", whole=whole, slice=size, share=share, is_table=is_table)
        for number, (whole, size, share, is_table) in enumerate(kinds)
    ]


@given(KINDS, TIMES_S)
def test_at_any_moment_the_unfinished_kinds_have_had_their_shares_of_the_time(
    kinds: list[tuple[int, int, float, bool]], times_s: list[float]
) -> None:
    works = drawn_works(kinds)
    had_s = dict.fromkeys((one.name for one in works), 0.0)
    longest = 0.0

    def look(plan: Plan) -> None:
        nonlocal longest
        for one in machine.ran[machine.keeps - 2 :]:  # the first call of `keep` comes before all slices
            share = next(kind.share for kind in works if kind.name == one.kind)
            had_s[one.kind] += machine.took_s(one) / share
            longest = max(longest, machine.took_s(one) / share)
        unfinished = [had_s[kind.name] for kind in works if plan.left(kind)]
        if unfinished:
            assert max(unfinished) - min(unfinished) <= longest * 1.000_001

    machine = FakeMachine(took_s=lambda one: times_s[one.number % len(times_s)], after=look)
    assert night(machine.plan(works), machine, None) is End.DONE
    assert {kind: len(numbers) for kind, numbers in units(machine.ran).items()} == {
        kind.name: kind.whole for kind in works
    }


def test_shares_are_of_seconds_and_not_of_slices() -> None:
    quick, slow = work("quick", whole=10**9, slice=1, share=2.0), work("slow", whole=10**9, slice=1)
    machine = FakeMachine(took_s=lambda one: 10.0 if one.kind == "quick" else 300.0)
    assert night(machine.plan((quick, slow)), machine, minutes=600) is End.TIME
    had_s = {name: sum(machine.took_s(one) for one in machine.ran if one.kind == name) for name in ("quick", "slow")}
    assert had_s["quick"] == pytest.approx(2 * had_s["slow"], abs=600)


def test_no_slice_begins_after_the_minutes_and_the_last_one_ends() -> None:
    machine = FakeMachine(took_s=lambda _: 50.0)
    assert night(machine.plan(), machine, minutes=2) is End.TIME
    assert machine.now_s == 150.0


def test_slices_that_fail_at_once_take_turns_too() -> None:
    machine = FakeMachine(took_s=lambda _: 0.0)
    night(machine.plan(), machine, None)
    assert [one.kind for one in machine.ran[:4]] == ["swarm", "table", "fuzz", "swarm"]


@given(TIMES_S, st.integers(1, 60))
def test_a_new_row_and_a_table_begun_anew_do_not_keep_the_others_waiting(times_s: list[float], before: int) -> None:
    """From then on, the shares are as if all had begun then."""
    first, table = work("first", whole=10**6, slice=1), work("table", whole=4, slice=1, is_table=True)
    machine = FakeMachine(took_s=lambda one: times_s[one.number % len(times_s)], ends_at=before + 4)
    with pytest.raises(Killed):
        night(machine.plan((first, table)), machine, None)
    ran = len(machine.ran)
    new = work("new", whole=10**6, slice=1)
    again = replace(machine, commit_now="bbb", ends_at=machine.calls + 60)
    with pytest.raises(Killed):
        night(again.plan((first, table, new)), again, None)
    had_s = dict.fromkeys(("first", "new"), 0.0)
    for one in again.ran[ran:]:
        if one.kind in had_s:
            had_s[one.kind] += again.took_s(one)
        assert abs(had_s["first"] - had_s["new"]) <= 2 * max(times_s) * 1.000_001


# --- numbers ---

STEPS = st.lists(st.tuples(st.sampled_from(("go on", "commit", "kill", "longer", "shorter")), st.integers(1, 12)))


@given(KINDS, TIMES_S, STEPS)
def test_no_number_of_a_kind_ever_comes_twice(
    kinds: list[tuple[int, int, float, bool]], times_s: list[float], steps: list[tuple[str, int]]
) -> None:
    """Whatever happens between the nights: other commits, kills, tables with more or fewer rows."""
    works, machine = drawn_works(kinds), FakeMachine(took_s=lambda one: times_s[one.number % len(times_s)])

    def told(one: Slice) -> tuple[int | None, Sequence[str]]:
        (kind,) = (kind for kind in works if kind.name == one.kind)
        assert not kind.is_table or turn_and_row(one.first)[1] + one.count <= kind.whole, "a row that is not there"
        return 0, []

    machine.told = told
    for number, (step, length) in enumerate(steps):
        if step == "commit":
            machine.commit_now = f"commit {number}"
        if step in ("longer", "shorter"):
            by = length if step == "longer" else -length
            works = [replace(one, whole=max(1, one.whole + by)) for one in works]
        machine.ends_at = machine.calls + length
        with pytest.raises(Killed):
            night(machine.plan(works), machine, minutes=10**6)
    for name, numbers in units(machine.ran).items():
        assert all(one < other for one, other in pairwise(numbers)), name


def test_the_next_round_has_new_seeds_and_all_rows_again() -> None:
    machine = FakeMachine()
    for _ in range(2):
        assert night(machine.plan(), machine, None) is End.DONE
    found = units(machine.ran)
    assert found["swarm"] == list(range(24))
    assert found["table"] == [*range(7), *range(STRIDE, STRIDE + 7)]
    assert from_text(machine.kept).of("fuzz").round == 2


def test_a_new_commit_begins_tables_anew_where_they_stood_and_seeds_go_on() -> None:
    machine = FakeMachine(ends_at=5)  # four slices: swarm, table, fuzz, swarm
    with pytest.raises(Killed):
        night(machine.plan(), machine, None)
    assert units(machine.ran)["table"] == [0, 1, 2]
    machine.commit_now, machine.ends_at = "bbb", 0
    night(machine.plan(), machine, None)
    found = units(machine.ran)
    assert found["table"] == [0, 1, 2, *range(STRIDE + 3, STRIDE + 7), *range(2 * STRIDE, 2 * STRIDE + 3)]
    assert found["swarm"] == list(range(12)) and found["fuzz"] == list(range(20))
    told = "\n".join(machine.said)
    assert "the commit is bbb; it was aaa" in told and "begun anew, as tables over the tree: table" in told
    assert "go on upwards: swarm, fuzz" in told


def test_a_commit_that_comes_on_the_way_ends_the_night_before_the_next_slice() -> None:
    """The process that runs has the software of the commit before."""
    machine = FakeMachine()
    machine.told = lambda one: (setattr(machine, "commit_now", "bbb"), (0, []))[1] if one.number == 2 else (0, [])
    assert night(machine.plan(), machine, None) is End.NEW_COMMIT
    assert len(machine.ran) == 2


def test_only_the_chosen_kinds_run_and_they_have_a_round_of_their_own() -> None:
    machine = FakeMachine()
    for _ in range(2):
        assert night(machine.plan(only=["swarm"]), machine, None) is End.DONE
    assert units(machine.ran) == {"swarm": list(range(24))}
    state = from_text(machine.kept)
    assert state.of("swarm").round == 2 and state.of("fuzz").done == 0


# --- interruptions ---


def broken_at_times(one: Slice) -> tuple[int | None, Sequence[str]]:
    return (1, [f"what {one.first} has broken", f"replay: ./dev sing {one.first}"]) if one.number % 3 == 1 else (0, [])


def whole_night(**ends: object) -> FakeMachine:
    """An end of the process, and then a process that goes on. ends: of the machine; none: undisturbed."""
    made = FakeMachine(took_s=lambda one: 10.0 + 7 * (one.first % 5) + len(one.kind), told=broken_at_times)
    machine = replace(made, **ends)  # type: ignore[arg-type]  # a table of settings
    try:
        end = night(machine.plan(), machine, None)
    except Killed:
        end = End.INTERRUPTED
    if end is End.DONE:
        return machine
    return gone_on(machine)


def gone_on(machine: FakeMachine) -> FakeMachine:
    machine.ends_at = machine.loses = 0
    assert night(machine.plan(), machine, None) is End.DONE
    return machine


SLICES = len(whole_night().ran)


@pytest.mark.parametrize("how", [Killed, Interrupted])
@pytest.mark.parametrize("slice_number", range(1, SLICES + 1))
def test_a_night_that_ended_in_any_slice_comes_to_the_same_end(slice_number: int, how: type[Exception]) -> None:
    whole, ended = whole_night(), whole_night(ends_at=slice_number, how=how)
    assert ended.kept == whole.kept
    assert [one.command for one in ended.ran] == [one.command for one in whole.ran]


@pytest.mark.parametrize("keep_number", range(1, SLICES + 2))
def test_a_state_that_was_not_written_loses_its_slice_only(keep_number: int) -> None:
    ended = whole_night(loses=keep_number)
    assert ended.kept == whole_night().kept
    assert len(ended.ran) == SLICES + (keep_number > 1)


# --- the state ---


def test_a_state_reads_as_it_was_written() -> None:
    text = whole_night().kept
    assert as_text(from_text(text)) == text and from_text(text).findings


@given(st.floats(0, 1, exclude_max=True))
def test_a_piece_of_a_state_is_refused(part: float) -> None:
    text = whole_night().kept.rstrip()
    with pytest.raises(Unreadable):
        from_text(text[: int(part * len(text))])


def changed(text: str, change: Callable[[dict[str, object]], object]) -> str:
    raw = json.loads(text)
    change(raw)
    return json.dumps(raw)


DAMAGE: list[tuple[str, Callable[[dict[str, object]], object]]] = [
    ("another version", lambda raw: raw.update(version=99)),
    ("no version", lambda raw: raw.pop("version")),
    ("no findings", lambda raw: raw.pop("findings")),
    ("a field too many", lambda raw: raw.update(mood="good")),
    ("a number that is text", lambda raw: raw.update(slices="7")),
    ("a number below 0", lambda raw: raw.update(slices=-7)),
    ("works that are a list", lambda raw: raw.update(works=[])),
    ("progress that is a number", lambda raw: raw.update(works={"swarm": 3})),
    ("progress without a field", lambda raw: raw.update(works={"swarm": {"next": 3}})),
    ("a finding that is null", lambda raw: raw.update(findings=[None])),
]


@pytest.mark.parametrize("change", [one for _, one in DAMAGE], ids=[name for name, _ in DAMAGE])
def test_a_damaged_state_is_refused(change: Callable[[dict[str, object]], object]) -> None:
    with pytest.raises(Unreadable):
        from_text(changed(whole_night().kept, change))


# --- what was found ---


def a_slice(verb: str, *more: str) -> Slice:
    return Slice(number=1, kind=verb, first=0, count=5, command=(verb, "--first", "7", *more), limit_s=3600.0)


def of_swarm() -> list[str]:
    bad = {"wire": "lane", "trace": "ab", "exercised": {}, "findings": [{"name": "lost-record", "text": "offset 3"}]}
    lines = []
    for seed, verdict in ((6, "VALID"), (7, "INVALID"), (8, "INVALID")):
        lines += line_of(Job(seed=seed, profile="disks", seconds=60), {**bad, "verdict": verdict}).splitlines()
        if seed == 7:
            lines += ["seed 7: lost-record at 3.1 s: offset 3", f"  replay: {replay(7, 'disks', 12, ' --blows 3')}"]
    return [*lines, "exercised: sent 3", "3 seeds, 2 not VALID, 9 s"]


def of_crash_sweep() -> list[str]:
    told: list[str] = []
    case = Case("append", 3, "a.py:3:sync", Fault.KILL, 1, next(iter(Variant)))
    broken = [Outcome(replace(case, at=at), (), f"acknowledged: {at} is lost") for at in (3, 4)]
    _tell_broken(Coverage(broken=broken), told.append)
    return [line for text in told for line in text.splitlines()]


def of_mutants() -> list[str]:
    fates = []
    for name, by in (("1-killed", "x"), ("2-lives", ""), ("3-does-not-apply", "")):
        mutant = Mutant(
            name=name, what="", expect=(), kind="sim", where="", profile="swarm", seconds=20, diff="",
        )  # fmt: skip
        fates.append(Fate(mutant=mutant, runs=200, by=by, problem="the diff no longer applies" if "3" in name else ""))
    return [f"[{number}/3] {fate}" for number, fate in enumerate(fates, 1)] + ["1 of 3 mutants killed"]


def of_soak() -> list[str]:
    return SoakOutcome(
        seed=7, length="365 virtual days", took_s=9, findings=[SoakFinding("files", "41 files, at most 40")],
        lacking=[], counts={}, gauges=Gauges("days"), repeat="./dev soak --virtual-days 365 --seed 7",
    ).lines  # fmt: skip


def of_fuzz_parsers() -> list[str]:
    name = sorted(fuzz.PARSERS)[0]

    class Bad:
        seeds = (b"seed",)
        errors = ()

        def mend(self, data: bytes) -> bytes:
            return data

        def call(self, data: bytes) -> object:
            raise ValueError("nobody caught it")

    patch = pytest.MonkeyPatch()
    patch.setitem(fuzz.PARSERS, name, Bad())  # type: ignore[arg-type]  # a parser that is wrong
    try:
        fuzz.fuzz(name, range(1, 2), fuzz.Tally())
    except ValueError as error:
        return "".join(traceback.format_exception(error)).splitlines()
    finally:
        patch.undo()
    raise AssertionError("it was caught")


TOLD = [
    (
        "swarm", of_swarm(),
        [("./dev sim --seed 7 --profile disks --seconds 12 --blows 3", "lost-record: offset 3"),
         ("./dev sim --seed 8 --profile disks --seconds 60", "lost-record: offset 3")],
    ),
    (
        "crash-sweep", of_crash_sweep(),
        [(f"--workload append --call {at}", f"acknowledged: {at} is lost") for at in (3, 4)],
    ),
    (
        "mutants", of_mutants(),
        [("./dev mutants 2-lives --seeds 200", "SURVIVED"),
         ("./dev mutants 3-does-not-apply --seeds 200", "no longer applies")],
    ),
    ("soak", of_soak(), [("./dev soak --virtual-days 365 --seed 7", "BROKEN files: 41 files")]),
    ("fuzz-parsers", of_fuzz_parsers(), [("--inputs 1", "ValueError: nobody caught it")]),
    (
        "test",
        ["FAILED tests/a.py::test_a - assert 0", "== suites", "unit FAIL", "FAILED tests/a.py::test_a[1 - 2]",
         "FLAKY  tests/b.py::test_b: it failed, and passed when it was run again"],
        [("./dev test tests/a.py::test_a[1 - 2]", "FAILED"), ("./dev test tests/b.py::test_b", "FLAKY")],
    ),
    ("live", ["seed 3: INVALID   9 records", "  lost: offset 3"], [("./dev live --first 7", "lost: offset 3")]),
]  # fmt: skip


@pytest.mark.parametrize(("verb", "lines", "want"), TOLD, ids=[one[0] for one in TOLD])
def test_a_finding_has_its_lines_and_the_command_that_replays_it(
    verb: str, lines: list[str], want: list[tuple[str, str]]
) -> None:
    found = findings_of(a_slice(verb, *(("--seeds", "200") if verb == "mutants" else ())), 1, lines)
    assert len(found) == len(want)
    for one, (command, line) in zip(found, want, strict=True):
        assert one.verdict == FOUND and command.replace("'", "") in one.replays[-1].replace("'", "")
        assert one.replays[-1].startswith("./dev ") and any(line in told for told in one.what)


def test_a_valid_seed_is_no_evidence_for_the_one_after_it() -> None:
    assert not any("seed 6" in line for one in findings_of(a_slice("swarm"), 1, of_swarm()) for line in one.what)


ENDS = [
    ("nothing", 0, []),
    ("proved nothing", 2, [PROVED_NOTHING]),
    ("too late", None, [FOUND]),
    ("by a signal", -11, [FOUND]),
    ("crashed", 70, [FOUND]),
]


@pytest.mark.parametrize(("code", "want"), [one[1:] for one in ENDS], ids=[one[0] for one in ENDS])
def test_every_end_but_a_good_one_is_told(code: int | None, want: list[str]) -> None:
    found = findings_of(a_slice("soak"), code, ["  too little: kills: 1 of 2"])
    assert [one.verdict for one in found] == want
    assert all("  too little: kills: 1 of 2" in one.what for one in found)
    assert all(one.replays == ("./dev soak --first 7",) for one in found)


def test_a_slice_with_very_many_findings_tells_how_many() -> None:
    lines = [f"replay: ./dev sing {number}" for number in range(FINDINGS_MAX + 5)]
    found = findings_of(a_slice("swarm"), 1, lines)
    assert len(found) == FINDINGS_MAX + 1 and found[-1].what == ("5 more of this slice: see its output",)


def test_the_report_has_the_finding_the_totals_and_what_is_left() -> None:
    machine = FakeMachine(ends_at=5, told=broken_at_times)
    with pytest.raises(Killed):
        night(machine.plan(), machine, None)
    plan = machine.plan()
    plan.adopt("bbb")
    text = page(plan, DATE)
    assert "commit `bbb`, 4 slices: 2 found." in text
    assert "### 1. swarm" in text and "At commit `aaa`" in text and "    ./dev sing 0\n" in text
    assert "what 0 has broken" in text and "`slices/00001-swarm.txt`" in text
    assert "| swarm | 1 | 10 | 12 seeds | 0.03 | 2 found | all of swarm |" in text
    assert "- swarm: 2 of 12 seeds left, some 0.0 hours; next: `./dev swarm --first 10 --count 2`" in text


def test_what_is_found_again_is_one_finding_that_knows_when_it_was_found_first() -> None:
    machine = FakeMachine(told=lambda one: (1, ["replay: ./dev sing"]) if one.kind == "table" else (0, []))
    night(machine.plan(), machine, None)
    machine.commit_now = "bbb"
    night(machine.plan(), machine, None)
    (finding,) = from_text(machine.kept).findings
    assert (finding.number, finding.since, finding.commit) == (1, "aaa", "bbb")


def test_a_night_ends_when_nobody_looks_at_what_it_finds() -> None:
    machine = FakeMachine(told=lambda one: (1, [f"replay: ./dev sing {one.number}"]))
    assert night(machine.plan((work("all", whole=10**6, slice=1),)), machine, None) is End.TOO_MANY
    assert len(machine.ran) == MOST_OPEN


def test_each_slice_tells_its_beginning_its_end_and_what_is_next() -> None:
    machine = FakeMachine(told=broken_at_times)
    night(machine.plan(), machine, None)
    assert machine.said[:4] == [
        "slice 1, swarm, begins (at most 120 minutes): ./dev swarm --first 0 --count 5",
        "slice 1, swarm, ended after 60 s: 1 found; 5 of 12 seeds are done; next: table",
        "  finding 1: what 0 has broken",
        "  replay: ./dev sing 0",
    ]
