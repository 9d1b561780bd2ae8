"""An authorizer that refuses nothing, and logs what another one would refuse: rules are tried before they count.

Each refusal is told once until the rules change: a client that polls would fill the log.
"""

from __future__ import annotations

import logging

from quorumlog.security.acl.authorizer import RuleAuthorizer, Verdict
from quorumlog.security.acl.content import words_of
from quorumlog.security.audit import cut
from quorumlog.security.authorizer import EVERYTHING, Operation, ResourceType
from quorumlog.security.principal import Principal

MAX_TOLD = 1_000  # refusals of one generation of rules; of the rest only the first is told
_log = logging.getLogger("quorumlog.authorizer")


class ReportOnly:
    def __init__(self, authorizer: RuleAuthorizer) -> None:
        self._authorizer = authorizer
        self._told: set[tuple[Principal, str, int, int, str]] = set()
        self._generation = authorizer.generation  # of what was told

    @property
    def generation(self) -> int:
        return self._authorizer.generation

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        if not self._authorizer.authorize(principal, host, operation, resource_type, name):
            self._tell(principal, host, operation, resource_type, name)
        return True

    def grants(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        return self._authorizer.authorize(principal, host, operation, resource_type, name)

    def operations(self, principal: Principal, host: str, resource_type: ResourceType, name: str) -> int:
        return EVERYTHING

    def explain(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Verdict:
        """What would be."""
        return self._authorizer.explain(principal, host, operation, resource_type, name)

    def authorize_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        if not self._authorizer.authorize_any(principal, host, operation, resource_type):
            what = f"{operation.name} any {resource_type.name.lower()}"
            if self._is_new((principal, host, operation, resource_type, "")):
                _log.warning("would be refused: %s from %s: %s: no rule allows it", principal, host, what)
        return True

    def _tell(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        shown = cut(name)
        if not self._is_new((principal, host, operation, resource_type, shown)):
            return
        verdict = self._authorizer.explain(principal, host, operation, resource_type, name)
        what = f"{operation.name} {resource_type.name.lower()} {shown}"
        _log.warning("would be refused: %s from %s: %s: %s", principal, host, what, words_of(verdict))

    def _is_new(self, refusal: tuple[Principal, str, int, int, str]) -> bool:
        if self._generation != self.generation:
            self._generation = self.generation
            self._told.clear()
        if refusal in self._told or len(self._told) > MAX_TOLD:
            return False
        self._told.add(refusal)
        if len(self._told) > MAX_TOLD:
            _log.warning("more would be refused than %d things; the rest is not told until the rules change", MAX_TOLD)
            return False
        return True
