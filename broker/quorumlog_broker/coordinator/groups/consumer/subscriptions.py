"""When the regular expressions of a group are resolved: off the way of calls, and what follows from a new result.

Subscriptions by regular expression: RE2, which takes time in proportion to the text whatever the expression is.

An expression has to match a topic's whole name. Names are looked through in slices, off the way of calls. What the
member may not describe whose heartbeat begins that is left out, for all who subscribe to the expression (as in Kafka).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import re2

from quorumlog.records.coordinator.consumer_groups import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from quorumlog.slices import Sliced
from quorumlog_broker.coordinator.group_turn import Turn
from quorumlog_broker.coordinator.groups.consumer.long_work import LongWork
from quorumlog_broker.coordinator.groups.consumer.records import bump
from quorumlog_broker.coordinator.groups.consumer.settings import Settings
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroups
from quorumlog_broker.coordinator.groups.consumer.targets import Targets
from quorumlog_broker.coordinator.turn import Sees, sees_all

MAX_LENGTH = 16_384  # characters of an expression
MAX_MEMORY_BYTES = 8 << 20  # that RE2 may take for one
COMPILED = 256  # expressions that are remembered
SLICE = 1_000
"""Names that are matched between two steps: about 2 ms."""


class InvalidExpression(ValueError):
    """RE2 does not take it."""


@lru_cache(COMPILED)
def _compiled(regex: str) -> Any:
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, MAX_MEMORY_BYTES
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not valid"
        raise InvalidExpression(reason.decode(errors="replace") if isinstance(reason, bytes) else reason) from error


def why_invalid(regex: str) -> str | None:
    """None: it is valid."""
    if len(regex) > MAX_LENGTH:
        return f"it has {len(regex)} characters, more than {MAX_LENGTH}"
    try:
        _compiled(regex)
    except InvalidExpression as error:
        return str(error)
    return None


def resolve(regex: str, names: Sequence[str], sees: Sees = sees_all) -> Sliced[tuple[str, ...]]:
    """The names that it matches, in their order. One that RE2 does not take (of old software) matches none."""
    if why_invalid(regex) is not None:
        return ()
    pattern, found = _compiled(regex), []
    for number, name in enumerate(names):
        if number % SLICE == SLICE - 1:
            yield
        if pattern.fullmatch(name) is not None and sees(name):
            found.append(name)
    return tuple(found)


KIND = "regular expressions"
MIN_INTERVAL_MS = 10_000  # between two looks at expressions that are resolved


class Subscriptions:
    def __init__(
        self, turn: Turn, settings: Settings, groups: ConsumerGroups, targets: Targets, work: LongWork
    ) -> None:
        self._turn, self._settings, self._groups = turn, settings, groups
        self._targets, self._work = targets, work

    def wanted(self, group: ConsumerGroup, sees: Sees) -> None:
        """Resolve what is not resolved; and all if there are other topics, or when it is time to look again. sees: the
        topics of whoever asks."""
        if not group.regex_users or self._work.has(KIND, group.group_id):
            return
        names = self._settings.cluster.topic_names()
        regexes = [one for one in group.regex_users if one not in group.regexes]
        if self._is_due(group, names):
            regexes = list(group.regex_users)
            group.resolved_names, group.resolved_at_ms = names, self._turn.now_ms
        if regexes:
            work = self._resolve(group, regexes, names, sees)
            self._work.start(KIND, group.group_id, work, lambda: self._again(group, sees))

    def _is_due(self, group: ConsumerGroup, names: Sequence[str]) -> bool:
        if group.resolved_at_ms is None:
            return True
        passed_ms = self._turn.now_ms - group.resolved_at_ms
        has_other_topics = names is not group.resolved_names and names != group.resolved_names
        return passed_ms >= MIN_INTERVAL_MS and (
            has_other_topics or passed_ms >= self._settings.consumer.regex_refresh_interval_ms
        )

    def _resolve(self, group: ConsumerGroup, regexes: list[str], names: Sequence[str], sees: Sees) -> Sliced[None]:
        version = self._settings.cluster.version
        found: dict[str, tuple[str, ...]] = {}
        for regex in regexes:
            found[regex] = yield from resolve(regex, names, sees)
            yield
        if self._groups.get(group.group_id) is not group:
            return
        has_changed = False
        for regex, topics in found.items():
            known = group.regexes.get(regex)
            if regex in group.regex_users and (known is None or known.topics != topics):
                value = ConsumerGroupRegularExpressionValue(topics, version, self._turn.wall_ms)
                self._turn.write(ConsumerGroupRegularExpressionKey(group.group_id, regex), value)
                has_changed = has_changed or known is not None or bool(topics)
        if has_changed:
            bump(self._turn, group, self._settings.cluster)
            self._targets.wanted(group)

    def _again(self, group: ConsumerGroup, sees: Sees) -> None:
        """A member may have brought another expression meanwhile."""
        if self._groups.get(group.group_id) is group:
            self.wanted(group, sees)
