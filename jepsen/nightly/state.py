"""What a night keeps: how far each kind has come, and what was found. As JSON with a version.

A file of another version, or one that cannot be read, is refused, so that nobody loses what was found.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

VERSION = 1
MOST_OPEN = 200  # findings; then the night ends: somebody has to look at them

FOUND, PROVED_NOTHING = "found", "proved nothing"


class Unreadable(Exception):
    """This text is no state of ours. The message says why."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """Of one kind. next: number of its next unit, see `Work`. done: units of this round. round: from 1.

    spent_s: real seconds of this round's slices. charged_s: what its turns are decided by, see `plan`.
    all_units, all_s: of all rounds.
    """

    next: int = 0
    done: int = 0
    round: int = 1
    spent_s: float = 0.0
    charged_s: float = 0.0
    all_units: int = 0
    all_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class Finding:
    """number: from 1, never given again. verdict: FOUND, or PROVED_NOTHING: the run could not be or did too little.

    what: lines of the output, of which the last one tells most. replays: commands, the best one last. output: file of
    the slice's whole output. commit: at which it was found last, and date: when; since: at which it was found first.
    fixed: the commit at which somebody said that it is fixed; "" if nobody did.
    """

    number: int
    kind: str
    verdict: str
    what: list[str]
    replays: list[str]
    output: str
    commit: str
    since: str
    date: str
    fixed: str = ""


@dataclass(slots=True, kw_only=True)
class State:
    """commit: of the last slice; "" before the first one. slices: that have ended. findings: by their numbers."""

    commit: str = ""
    slices: int = 0
    works: dict[str, Progress] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def open(self) -> list[Finding]:
        """What was found and is not fixed."""
        return [finding for finding in self.findings if not finding.fixed]

    def of(self, kind: str) -> Progress:
        return self.works.setdefault(kind, Progress())


def as_text(state: State) -> str:
    return json.dumps({"version": VERSION, **asdict(state)}, indent=1) + "\n"


def from_text(text: str) -> State:
    """Raises Unreadable."""
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise Unreadable(f"it is damaged: {error}") from error
    if not isinstance(raw, dict) or not isinstance(raw.get("version"), int):
        raise Unreadable("it is damaged: it has no version")
    if raw.pop("version") != VERSION:
        raise Unreadable(f"it is of another version; this software reads version {VERSION}")
    try:
        works = {name: _made(Progress, one) for name, one in raw.pop("works").items()}
        findings = [_made(Finding, one) for one in raw.pop("findings")]
        return _made(State, {**raw, "works": works, "findings": findings})
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise Unreadable(f"it is damaged: {error}") from error


Made = TypeVar("Made", Progress, Finding, State)
_KINDS: dict[str, type | tuple[type, ...]] = {"int": int, "float": (int, float), "str": str, "list[str]": list}


def _made(kind: type[Made], raw: Mapping[str, Any]) -> Made:
    """Raises ValueError, TypeError, AttributeError."""
    wanted = {field.name: _KINDS.get(str(field.type), object) for field in fields(kind)}
    if raw.keys() != wanted.keys():
        raise ValueError(f"{kind.__name__} has {', '.join(sorted(raw))}")
    for name, value in raw.items():
        is_text = all(isinstance(line, str) for line in value) if wanted[name] is list else True
        is_number = not isinstance(value, bool) and (not isinstance(value, int | float) or value >= 0)
        if not (isinstance(value, wanted[name]) and is_text and is_number):
            raise ValueError(f"{name} is {value!r}")
    return kind(**raw)
