"""What a slice has found, read from its exit code and its output. Pure.

The verbs agree on their exit codes: 0, all held; 1, something was found; 2, the run could not be, or did too little to
prove anything. Any other end is a finding, too. With most findings they print the command that replays it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jepsen.nightly.state import FOUND, PROVED_NOTHING
from jepsen.nightly.work import Command, Slice, as_typed

COULD_NOT = 2  # the exit code of a run that proved nothing
LINES_MAX = 12  # of a finding
LINE_CHARACTERS = 400
FINDINGS_MAX = 20  # of a slice

_REPLAY = re.compile(r"\s*(?:replay|repeat|repeat it): (\./dev .+)$")
_FAILED_TEST = re.compile(r"(?:FAILED|FLAKY ) (tests/\S+?::.+?)(?:: it failed, and passed.*)?$")
_CLOSING = "== suites"
_MUTANT = re.compile(r"\[\d+/\d+\] (\S+)\s+(?:SURVIVED|FAILED)\b")


@dataclass(frozen=True, slots=True)
class Found:
    """See `state.Finding`. The last line of `what` tells most."""

    verdict: str
    what: tuple[str, ...]
    replays: tuple[str, ...]


def findings_of(ended: Slice, code: int | None, lines: Iterable[str]) -> list[Found]:
    """code: the exit code, negative for a signal; None: it was ended after its limit. lines: the output, in order."""
    if code == 0:
        return []
    told = [line.rstrip()[:LINE_CHARACTERS] for line in lines]
    whole = (as_typed(ended.command),)
    if code is None:
        late = f"did not end within {ended.limit_s:.0f} s"
        return [Found(FOUND, (*_last(told), late), whole)]
    if code == COULD_NOT:
        return [Found(PROVED_NOTHING, _last(told), whole)]
    by_verb = {"mutants": lambda: _survivors(told, ended.command), "test": lambda: _failed_tests(told)}
    found = by_verb.get(ended.command[0], lambda: _replayable(told))()
    if not found:
        return [Found(FOUND, (*_last(told), f"exit code {code}"), whole)]
    more = len(found) - FINDINGS_MAX
    if more > 0:
        found[FINDINGS_MAX:] = [Found(FOUND, (f"{more} more of this slice: see its output",), whole)]
    return found


def _last(told: Sequence[str]) -> tuple[str, ...]:
    return tuple([line for line in told if line][-LINES_MAX:])


def _survivors(told: Sequence[str], command: Command) -> list[Found]:
    """The verb prints no command for one of its mutants."""
    seeds, found = _value(command, "--seeds"), []
    for line in told:
        if match := _MUTANT.match(line):
            replay = f"./dev mutants {match[1]}" + (f" --seeds {seeds}" if seeds else "")
            found.append(Found(FOUND, (line,), (replay,)))
    return found


def _failed_tests(told: Sequence[str]) -> list[Found]:
    """One for each test that the closing lines of `tests/run.py` name, so that another one is another finding."""
    closing = told[told.index(_CLOSING) :] if _CLOSING in told else ()
    named = [(line, match[1]) for line in closing if (match := _FAILED_TEST.match(line))]
    return [Found(FOUND, (line,), (f"./dev test {shlex.quote(test)}",)) for line, test in named]


def _replayable(told: Sequence[str]) -> list[Found]:
    """One for each command that replays something; the shrunk run of a seed belongs to the finding of that seed."""
    found: list[Found] = []
    after = 0  # lines before it belong to earlier findings
    for number, line in enumerate(told):
        if (match := _REPLAY.match(line)) is None:
            continue
        evidence, replay = _evidence(told[after:number], is_indented=line[0].isspace()), match[1]
        after = number + 1
        if found and _is_same_seed(found[-1].replays[0], replay):
            before = found.pop()
            what = (*before.what, *evidence)
            found.append(Found(FOUND, what[-LINES_MAX:], tuple(dict.fromkeys((*before.replays, replay)))))
        else:
            found.append(Found(FOUND, evidence, (replay,)))
    return found


def _evidence(lines: Sequence[str], *, is_indented: bool) -> tuple[str, ...]:
    """What belongs to a replay. An indented one belongs to the nearest line above that is not indented."""
    first = max(0, len(lines) - LINES_MAX)
    heads = [number for number, line in enumerate(lines) if line and not line[0].isspace()]
    if is_indented and heads:
        first = max(first, heads[-1])
    return tuple(line for line in lines[first:] if line)


def _is_same_seed(one: str, other: str) -> bool:
    """Both are of the simulation, and of one seed and profile."""
    words, others = shlex.split(one), shlex.split(other)
    if words[:2] != ["./dev", "sim"] or others[:2] != ["./dev", "sim"]:
        return False
    return all(_value(words, option) == _value(others, option) for option in ("--seed", "--profile"))


def _value(words: Sequence[str], option: str) -> str:
    return words[words.index(option) + 1] if option in words[:-1] else ""
