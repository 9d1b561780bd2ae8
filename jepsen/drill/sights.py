"""What the watchers saw, and what a fault should have made them see. Pure.

A watcher looks again and again; a look tells names (causes, or alerts) of subjects. A fault is named by the end of the
first look that tells one of its names about its subject. What else a look tells must be a consequence of the fault, or
have been there before it: the machine's own troubles (a full disk, a busy processor) are nobody's fault here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

CHECK, EXPLAIN, ALERT, CONSOLE = WATCHERS = ("check", "explain", "alert", "console")


class Told(NamedTuple):
    """name: of a cause or an alert. subject: of the cause, or the labels of the alert. calm: a notice."""

    name: str
    subject: str
    calm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Times in seconds of the run. trouble: why it saw nothing; empty: it did."""

    watcher: str
    began_s: float
    ended_s: float
    told: frozenset[Told] = frozenset()
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """causes, alerts: any of these is the fault's name; without alerts no rule is for it, which `no_alert` says why.

    subject: what a cause's subject begins with, or any of these. calm: the cause is a notice by its nature.
    consequences: causes that may be told besides; an alert is one if a cause of it is, or the fault's own.
    """

    causes: tuple[str, ...]
    subject: str | tuple[str, ...]
    alerts: tuple[str, ...] = ()
    no_alert: str = ""
    calm: bool = False
    consequences: frozenset[str] = frozenset()

    def is_named(self, watcher: str, one: Told) -> bool:
        if watcher == ALERT:
            return one.name in self.alerts
        return one.name in self.causes and one.subject.startswith(self.subject) and (self.calm or not one.calm)

    def allows(self, watcher: str, one: Told, causes_of: Mapping[str, Collection[str]]) -> bool:
        """It is the fault, or follows from it. causes_of: of each alert."""
        allowed = {*self.causes, *self.consequences}
        if watcher == ALERT:
            return one.name in self.alerts or bool(allowed & set(causes_of.get(one.name, ())))
        return one.calm or one.name in allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Of one watcher and one fault. named_s, silent_s: after the put and the lift; None: not in time.

    wrong: names that are neither the fault's nor consequences. looks: that were taken while the fault was there.
    """

    watcher: str
    is_wanted: bool = True
    named_s: float | None = None
    silent_s: float | None = None
    wrong: tuple[str, ...] = ()
    looks: int = 0
    troubles: tuple[str, ...] = ()

    def times(self) -> str:
        """Seconds to its name and to silence."""
        named = "none" if not self.is_wanted else "NOT" if self.named_s is None else f"{self.named_s:.1f}"
        return f"{named} / {'NOT' if self.silent_s is None else f'{self.silent_s:.0f}'}"

    def failures(self, within_s: float) -> list[str]:
        found = []
        if self.is_wanted and (self.named_s is None or self.named_s > within_s):
            found.append(f"{self.watcher} did not name it within {within_s:.0f} s ({self.looks} looks)")
        if self.silent_s is None:
            found.append(f"{self.watcher} was not silent again in time")
        return found + [f"{self.watcher} told {name}" for name in self.wrong]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """When a fault was put and lifted, and until when silence was waited for, in seconds of the run."""

    put_s: float
    lifted_s: float
    ended_s: float


@dataclass(slots=True)
class Sights:
    """All looks, in the order of their ends."""

    looks: list[Look] = field(default_factory=list)

    def of(self, watcher: str, since_s: float, until_s: float) -> list[Look]:
        """Those that ended in this time; inclusive."""
        return [one for one in self.looks if one.watcher == watcher and since_s <= one.ended_s <= until_s]

    def background(self, watcher: str, until_s: float, count: int = 3) -> set[str]:
        """Names of warnings in the last looks before this moment."""
        return {one.name for look in self.of(watcher, 0, until_s)[-count:] for one in look.told if not one.calm}


def named_after(looks: Iterable[Look], expected: Expected, put_s: float) -> float | None:
    for look in looks:
        if look.ended_s >= put_s and any(expected.is_named(look.watcher, one) for one in look.told):
            return look.ended_s - put_s
    return None


def silent_after(looks: Sequence[Look], expected: Expected, lifted_s: float, noise: Collection[str]) -> float | None:
    """From the first look on that began after the lift and, as all after it, tells no warning and not the fault."""
    since: float | None = None
    for look in looks:
        if look.began_s < lifted_s:
            continue
        loud = bool(look.trouble) or any(
            one.name not in noise and (not one.calm or expected.is_named(look.watcher, one)) for one in look.told
        )
        if loud:
            since = None
        elif since is None:
            since = look.ended_s - lifted_s
    return since


def _first(subjects: Collection[str]) -> str:
    more = len(subjects) - 1
    return min(subjects) + (f" and {more} more" if more else "")


def judged(
    sights: Sights, watcher: str, expected: Expected, course: Course, causes_of: Mapping[str, Collection[str]]
) -> Verdict:
    noise = sights.background(watcher, course.put_s)
    struck = sights.of(watcher, course.put_s, course.lifted_s)
    every = sights.of(watcher, course.put_s, course.ended_s)
    wrong: dict[str, set[str]] = {}
    for one in (one for look in every for one in look.told):
        if one.name not in noise and not one.calm and not expected.allows(watcher, one, causes_of):
            wrong.setdefault(one.name, set()).add(one.subject)
    return Verdict(
        watcher=watcher,
        is_wanted=watcher != ALERT or bool(expected.alerts),
        named_s=named_after(struck, expected, course.put_s),
        silent_s=silent_after(every, expected, course.lifted_s, noise),
        wrong=tuple(f"{name} of {_first(subjects)}" for name, subjects in sorted(wrong.items())),
        looks=len(struck),
        troubles=tuple(dict.fromkeys(look.trouble for look in struck if look.trouble)),
    )
