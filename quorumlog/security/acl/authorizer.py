"""The authorizer that asks the access rules of the metadata, and says why.

Order: nodes of this cluster and super users may do everything; then a fitting DENY decides, then a fitting ALLOW. What
is left is denied, but for a name that no rule of anybody is about: there `allow.everyone.if.no.acl.found` decides.
Source: KIP-11, KIP-679; Kafka's StandardAuthorizer.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from quorumlog.security.acl.index import (
    DENY,
    LITERAL,
    PREFIXED,
    WILDCARD,
    Rule,
    RuleIndex,
    operations_of,
)
from quorumlog.security.authorizer import EVERYTHING, Operation, ResourceType
from quorumlog.security.host import host_text
from quorumlog.security.principal import NODE, Principal
from quorumlog.topic_name import INTERNAL_TOPICS

MAX_CACHED = 65_536  # answers to (principal, host, type, name); the least recently used one is forgotten
MAX_CACHED_NAME = (
    256  # characters; the answer about a longer name, which a client may make as long as a request, is not
)
MAX_CACHED_ANY = 4_096  # answers to (principal, host, type)


class Why(Enum):
    """What decided. RULE: the rule of the verdict."""

    NODE = "a node of this cluster may do everything"
    SUPER_USER = "a super user may do everything (super.users)"
    RULE = "a rule says so"
    NO_RULE_OF_NAME = "no rule is about this name, and allow.everyone.if.no.acl.found decides"
    NOT_READY = "this node has not read the rules yet"
    NO_RULE_FITS = "no rule allows it"
    INTERNAL_TOPIC = "only a literal rule of this name lets anybody read a topic of the cluster's own"


@dataclass(frozen=True, slots=True)
class Verdict:
    """rule: the one that decided; None if none did."""

    allowed: bool
    why: Why
    rule: Rule | None = None


class RuleAuthorizer:
    """index: whoever follows the metadata changes it, or puts another in its place; all cached answers go then.
    Until the first one has come, only nodes and super users may do anything.

    super_users: as TYPE:NAME. allow_everyone: where no rule is about a name.
    """

    def __init__(
        self,
        index: RuleIndex | None = None,
        super_users: Collection[str] = (),
        allow_everyone: bool = False,
        cached: int = MAX_CACHED,
    ) -> None:
        self.index = RuleIndex() if index is None else index
        self.ready = index is not None
        self._super_users = frozenset(super_users)
        self._allow_everyone = allow_everyone
        self._generation = self.index.generation  # of the cached answers
        self._cached = lru_cache(maxsize=cached)(self._decide)
        self._cached_any = lru_cache(maxsize=MAX_CACHED_ANY)(self._decide_any)

    @property
    def generation(self) -> int:
        """Another one: what was decided before may be decided otherwise now."""
        return self.index.generation

    def take(self, index: RuleIndex) -> None:
        """Decide by it from now on. Its generation is a later one."""
        assert index.generation > self.generation, f"{index.generation} <= {self.generation}"
        self.index, self.ready = index, True

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        return self.operations(principal, host, resource_type, name) >> operation & 1 == 1

    def grants(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        return self.authorize(principal, host, operation, resource_type, name)

    def operations(self, principal: Principal, host: str, resource_type: ResourceType, name: str) -> int:
        """Everything that it may do with the resource: one bit for each operation."""
        if self._generation != self.index.generation:
            self._forget()
        if len(name) > MAX_CACHED_NAME:
            return self._decide(principal, host, resource_type, name)
        return self._cached(principal, host, resource_type, name)

    def authorize_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        if self._generation != self.index.generation:
            self._forget()
        return self._cached_any(principal, host, operation, resource_type)

    def explain(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Verdict:
        """The same answer as `authorize`, and what decided it. Of several rules that decide, the first by its id."""
        exempt = self._exempt(principal)
        if exempt is not None:
            return Verdict(True, exempt)
        if not self.ready:
            return Verdict(False, Why.NOT_READY)
        fitting = self.index.fitting(str(principal), host_text(host), resource_type, name)
        naming = [rule for rule in sorted(fitting, key=_order) if operations_of(rule) >> operation & 1]
        allowed = self.authorize(principal, host, operation, resource_type, name)
        for rule in naming:
            if (rule.permission_type == DENY) is not allowed and _reaches(rule, operation, resource_type, name):
                return Verdict(allowed, Why.RULE, rule)
        if operation == Operation.READ and resource_type == ResourceType.TOPIC and name in INTERNAL_TOPICS:
            return Verdict(False, Why.INTERNAL_TOPIC)
        matched = self.index.masks(str(principal), host_text(host), resource_type, name).matched
        return Verdict(allowed, Why.NO_RULE_FITS if matched else Why.NO_RULE_OF_NAME)

    def _exempt(self, principal: Principal) -> Why | None:
        if principal.type == NODE:
            return Why.NODE
        return Why.SUPER_USER if str(principal) in self._super_users else None

    def _decide(self, principal: Principal, host: str, resource_type: ResourceType, name: str) -> int:
        if self._exempt(principal):
            return EVERYTHING
        if not self.ready:
            return 0
        allow, deny, matched = self.index.masks(str(principal), host_text(host), resource_type, name)
        if matched or not self._allow_everyone:
            return allow & ~deny
        own = resource_type == ResourceType.TOPIC and name in INTERNAL_TOPICS
        return EVERYTHING & ~(1 << Operation.READ) if own else EVERYTHING

    def _decide_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        """Some pattern allows it, and no DENY covers all that the pattern matches."""
        if self._exempt(principal):
            return True
        if not self.ready:
            return False
        if self._allow_everyone and not self.index.has_pattern(resource_type, LITERAL, WILDCARD):
            return True
        bit = 1 << operation
        allowed: list[tuple[int, str]] = []
        denied: set[tuple[int, str]] = set()
        for pattern_type, name, allow, deny in self.index.masks_of_patterns(
            str(principal), host_text(host), resource_type
        ):
            if deny & bit:
                denied.add((pattern_type, name))
            if allow & bit:
                allowed.append((pattern_type, name))
        if (LITERAL, WILDCARD) in denied:
            return False
        return any(not _covered(pattern_type, name, denied) for pattern_type, name in allowed)

    def _forget(self) -> None:
        self._generation = self.index.generation
        self._cached.cache_clear()
        self._cached_any.cache_clear()


def _covered(pattern_type: int, name: str, denied: Collection[tuple[int, str]]) -> bool:
    """Whether a DENY of the same pattern or of a prefix concerns everything that the pattern matches."""
    if pattern_type == LITERAL and name == WILDCARD:
        return False  # no prefix covers every name, and a DENY of all names was looked for before
    if (pattern_type, name) in denied:
        return True
    return any((PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))


def _reaches(rule: Rule, operation: Operation, resource_type: ResourceType, name: str) -> bool:
    """False: an ALLOW that does not count, because it does not name the cluster's own topic."""
    if rule.permission_type == DENY or operation != Operation.READ or resource_type != ResourceType.TOPIC:
        return True
    return name not in INTERNAL_TOPICS or (rule.pattern_type == LITERAL and rule.resource_name == name)


def _order(rule: Rule) -> tuple[bool, bytes]:
    return (rule.permission_type != DENY, rule.id)
