"""The audit log: who logged in, who was denied what, and who has changed what, as one JSON object a line in
`quorumlog.audit`.

Equal denials, and equal logins, of WINDOW_MS are one line with a count, written when the window ends, so that a client
that tries again and again does not fill a disk. What a listing leaves out is no denial. A line of a request has its id,
NODE:CONNECTION:CORRELATION (of the first one where it counts several), and what decided.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from quorumlog.alarm import Alarm
from quorumlog.clock import Clock
from quorumlog.security.authorizer import CLUSTER_NAME, ResourceType
from quorumlog.security.login import Login
from quorumlog.security.principal import Principal
from quorumlog.security.required.asker import Change, Denial
from quorumlog.security.required.need import Need

WINDOW_MS = 10_000
MAX_WINDOWS = 1_000  # that are open; the oldest one is written early
MAX_NAMES = 100  # of keys that differ by the name only, and have windows of their own; the rest is OTHERS
OTHERS = "(others)"
MAX_NAME_CHARACTERS = 300  # of a name that a client chose

Why = Callable[[Principal, str, Need, str], tuple[bool, str]]  # (who, host, right, name) -> allowed, and what decides
Details = Mapping[str, Any]
K = TypeVar("K", Denial, Login)

_log = logging.getLogger("quorumlog.audit")


def nothing_decides(_principal: Principal, _host: str, _need: Need, _name: str) -> tuple[bool, str]:
    """Where no rules are in force."""
    return True, "no authorizer is on"


class Ended(NamedTuple, Generic[K]):
    """A window. details: of the first in it."""

    key: K
    times: int
    details: Details


class Counts(Generic[K]):
    """Pure: what happened and times go in, ended windows come out."""

    def __init__(self) -> None:
        self._open: dict[K, tuple[int, int, Details]] = {}  # begin in ms, how many, and of the first; by their begins
        self._names: Counter[tuple[object, ...]] = Counter()  # open windows of keys that differ by the name only

    @property
    def next_ms(self) -> int | None:
        """When the oldest window ends."""
        for begin_ms, _, _ in self._open.values():
            return begin_ms + WINDOW_MS
        return None

    def add(self, key: K, now_ms: int, details: Callable[[], Details] = dict) -> list[Ended[K]]:
        """Windows that end early to make room. details: asked for the first of a window. A long name is kept as far as
        it will be shown."""
        if len(key.name) > MAX_NAME_CHARACTERS:
            key = key._replace(name=cut(key.name))
        if key not in self._open and self._names[key[:-1]] >= MAX_NAMES:
            key = key._replace(name=OTHERS)
        if key in self._open:
            begin_ms, count, first = self._open[key]
            self._open[key] = (begin_ms, count + 1, first)
            return []
        self._names[key[:-1]] += 1
        self._open[key] = (now_ms, 1, details())
        return [] if len(self._open) <= MAX_WINDOWS else [self._end(next(iter(self._open)))]

    def ended(self, now_ms: int) -> list[Ended[K]]:
        due = [one for one, (begin_ms, *_) in self._open.items() if begin_ms + WINDOW_MS <= now_ms]
        return [self._end(one) for one in due]

    def all(self) -> list[Ended[K]]:
        """The node stops."""
        return [self._end(one) for one in list(self._open)]

    def _end(self, key: K) -> Ended[K]:
        group = key[:-1]
        self._names[group] -= 1
        if not self._names[group]:
            del self._names[group]
        _, count, details = self._open.pop(key)
        return Ended(key, count, details)


class AuditLog:
    """Of one node. It needs a running loop. why: what decides about a right."""

    def __init__(self, clock: Clock, node_id: int, why: Why = nothing_decides) -> None:
        self._clock, self._node_id, self._why = clock, node_id, why
        self._denials: Counts[Denial] = Counts()
        self._logins: Counts[Login] = Counts()
        self.allowed = self.refused = 0  # rights that were asked for
        self._alarm = Alarm(clock, self._next_ms, self._on_due)

    def denied(self, denial: Denial, request_id: str) -> None:
        self.refused += 1

        def details() -> Details:
            allowed, why = self._why(denial.principal, denial.host, denial.need, denial.name)
            return {"request": self._request(request_id), "rule": "" if allowed else why}

        _write(line_of(one) for one in self._denials.add(denial, self._clock.now_ms(), details))
        self._arm()

    def login(self, login: Login, reason: str) -> None:
        """Of a connection, or of a call by gRPC. reason: why it failed."""
        ended = self._logins.add(login, self._clock.now_ms(), lambda: {"reason": cut(reason)} if login.failed else {})
        _write(line_of_login(one) for one in ended)
        self._arm()

    def changed(self, change: Change) -> None:
        _write([line_of_change(change, self._request(change.request_id), self._rule_of(change))])

    def close(self) -> None:
        self._alarm.cancel()
        self._write_windows(self._denials.all(), self._logins.all())

    def _request(self, request_id: str) -> str:
        return f"{self._node_id}:{request_id}" if request_id else ""

    def _rule_of(self, change: Change) -> str:
        """What allowed it: the first of its rights that is there, for the first name."""
        for need in change.needs:
            of_cluster = need.resource_type is ResourceType.CLUSTER
            if of_cluster or change.names:
                name = CLUSTER_NAME if of_cluster else change.names[0]
                allowed, why = self._why(change.principal, change.host, need, name)
                if allowed:
                    return why
        return ""

    def _arm(self) -> None:
        if not self._alarm.is_set:
            self._alarm.arm()

    def _next_ms(self) -> int | None:
        return min((one for one in (self._denials.next_ms, self._logins.next_ms) if one is not None), default=None)

    def _on_due(self, now_ms: int, _late_ms: int) -> None:
        self._write_windows(self._denials.ended(now_ms), self._logins.ended(now_ms))

    def _write_windows(self, denials: Iterable[Ended[Denial]], logins: Iterable[Ended[Login]]) -> None:
        _write(line_of(one) for one in denials)
        _write(line_of_login(one) for one in logins)


def _write(lines: Iterable[str]) -> None:
    for line in lines:
        _log.info("%s", line)


def line_of(ended: Ended[Denial]) -> str:
    """ASCII, without line breaks, whatever names hold."""
    denial = ended.key
    return json.dumps(
        {
            "result": "denied",
            "principal": cut(str(denial.principal)),
            "host": denial.host,
            "listener": denial.listener,
            "api": denial.api,
            "operation": denial.need.operation.name,
            "resource_type": denial.need.resource_type.name,
            "resource": cut(denial.name),
            "count": ended.times,
            **ended.details,
        }
    )


def line_of_login(ended: Ended[Login]) -> str:
    """As `line_of`."""
    login = ended.key
    return json.dumps(
        {
            "result": "login failed" if login.failed else "login",
            "principal": login.principal,
            "host": login.host,
            "listener": login.listener,
            "mechanism": login.mechanism,
            "count": ended.times,
            **ended.details,
        }
    )


def line_of_change(change: Change, request: str, rule: str) -> str:
    """As `line_of`."""
    return json.dumps(
        {
            "result": "failed" if change.errors else "done",
            "principal": cut(str(change.principal)),
            "host": change.host,
            "listener": change.listener,
            "api": change.api,
            "resources": [cut(name) for name in change.names],
            "errors": list(change.errors),
            "request": request,
            "rule": rule,
            "metadata_offset": change.metadata_end - 1 if change.metadata_end > 0 else None,
        }
    )


def cut(text: str) -> str:
    """As much of a name as a log shows: a client may make one as long as a request."""
    return text if len(text) <= MAX_NAME_CHARACTERS else text[: MAX_NAME_CHARACTERS - 3] + "..."
