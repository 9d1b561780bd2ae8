"""Access rules for tests: everything is allowed but what a test denies, and every question is noted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from quorumlog.security.authorizer import Operation, ResourceType
from quorumlog.security.principal import Principal
from quorumlog.security.required.asker import Change, Denial
from quorumlog.security.required.need import Need

IsDenied = Callable[[Need, str], bool]


class ScriptedRules:
    """generation: of the rules; `deny` and `allow_all` make the next one."""

    def __init__(self) -> None:
        self.generation = 1
        self.asked: set[Need] = set()
        self.askers: set[tuple[Principal, str]] = set()
        self._is_denied: IsDenied = lambda _need, _name: False

    def deny(self, is_denied: IsDenied) -> None:
        self._is_denied = is_denied
        self.generation += 1

    def deny_needs(self, needs: Collection[Need]) -> None:
        self.deny(lambda need, _name: need in needs)

    def deny_names(self, *names: str) -> None:
        self.deny(lambda _need, name: name in names)

    def allow_all(self) -> None:
        self.deny(lambda _need, _name: False)

    # --- as rules

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        need = Need(resource_type, operation)
        self.asked.add(need)
        self.askers.add((principal, host))
        return not self._is_denied(need, name)

    def grants(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        return self.authorize(principal, host, operation, resource_type, name)

    def authorize_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        return self.authorize(principal, host, operation, resource_type, "*")

    def operations(self, principal: Principal, host: str, resource_type: ResourceType, name: str) -> int:
        allowed = (one for one in Operation if not self._is_denied(Need(resource_type, one), name))
        return sum(1 << one for one in allowed)


class SomeTopics:
    """ids: by name."""

    def __init__(self, ids: dict[str, bytes], creates: bool = True) -> None:
        self.creates = creates
        self.ids = ids

    def name_of(self, topic_id: bytes) -> str | None:
        return next((name for name, one in self.ids.items() if one == topic_id), None)

    def exists(self, name: str) -> bool:
        return name in self.ids

    def names(self) -> Sequence[str]:
        return sorted(self.ids)


class Noted:
    """An audit log that keeps what it is told."""

    def __init__(self) -> None:
        self.allowed = 0
        self.denials: list[Denial] = []
        self.changes: list[Change] = []

    def changed(self, change: Change) -> None:
        self.changes.append(change)

    def denied(self, denial: Denial, request_id: str) -> None:
        self.denials.append(denial)
