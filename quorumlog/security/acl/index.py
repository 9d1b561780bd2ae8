"""Access rules by what they are about, so that a decision costs the same however many there are.

A rule is the record that made it. A decision looks at the patterns that match a name: (LITERAL, the name), (LITERAL,
`*`), and (PREFIXED, p) for each length of a prefix that some rule has. For each of them it asks for the client's
principal and for `User:*`, on its host and on `*`. The answer has one bit for each operation, so one question answers
them all. Source: KIP-11, KIP-290; Kafka's StandardAuthorizerData.

- A DENY that fits wins over every ALLOW. ALL fits each operation.
- An ALLOW of READ, WRITE, DELETE or ALTER allows DESCRIBE, and one of ALTER_CONFIGS allows DESCRIBE_CONFIGS; a DENY
  denies what it names and nothing else.
- A PREFIXED `*` is a character like any other.
- READ of the topics that the cluster keeps for itself is allowed by a LITERAL rule of that name only (decision 128).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from quorumlog.messages.metadata_records import AccessControlEntryRecord
from quorumlog.security.authorizer import EVERYTHING, Operation, ResourceType
from quorumlog.security.host import host_text
from quorumlog.topic_name import INTERNAL_TOPICS

Rule = AccessControlEntryRecord
LITERAL, PREFIXED = 3, 4  # Kafka's PatternType
DENY, ALLOW = 2, 3  # Kafka's AclPermissionType
WILDCARD = "*"  # of a LITERAL name, and of a host
EVERYBODY = "User:*"

IMPLIED: Mapping[Operation, tuple[Operation, ...]] = {
    Operation.READ: (Operation.DESCRIBE,),
    Operation.WRITE: (Operation.DESCRIBE,),
    Operation.DELETE: (Operation.DESCRIBE,),
    Operation.ALTER: (Operation.DESCRIBE,),
    Operation.ALTER_CONFIGS: (Operation.DESCRIBE_CONFIGS,),
}
_READ = 1 << Operation.READ


class Masks(NamedTuple):
    """allow, deny: one bit for each operation. matched: some rule is about the name, whomever it concerns."""

    allow: int
    deny: int
    matched: bool


class _Cell:
    """The rules of one pattern for one principal on one host."""

    __slots__ = ("allow", "deny", "rules")

    def __init__(self) -> None:
        self.allow = self.deny = 0
        self.rules: dict[bytes, Rule] = {}

    def add(self, rule: Rule) -> None:
        assert rule.id not in self.rules, f"the rule {rule.id.hex()} is there already"
        self.rules[rule.id] = rule
        self._count(rule)

    def remove(self, rule: Rule) -> None:
        del self.rules[rule.id]
        self.allow = self.deny = 0
        for left in self.rules.values():  # two of them may allow the same
            self._count(left)

    def _count(self, rule: Rule) -> None:
        if rule.permission_type == ALLOW:
            self.allow |= operations_of(rule)
        else:
            self.deny |= operations_of(rule)


_Hosts = dict[str, _Cell]
_Principals = dict[str, _Hosts]


class _Patterns:
    """The rules of one type of resource. lengths: of the prefixes, ascending."""

    __slots__ = ("lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, _Principals] = {}
        self.prefixed: dict[str, _Principals] = {}
        self.lengths: tuple[int, ...] = ()

    def named(self, pattern_type: int) -> dict[str, _Principals]:
        return self.prefixed if pattern_type == PREFIXED else self.literal


class RuleIndex:
    """Call `add` and `remove` in the order of the records; each costs the same at any number of rules, but for the
    first and the last prefix of a length."""

    def __init__(self, generation: int = 0) -> None:
        """generation: of the rules; it rises with each change."""
        self.generation = generation
        self._types: dict[int, _Patterns] = {}
        self._lengths: dict[tuple[int, int], int] = {}  # (type, length of a prefix) -> prefixes that have it
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, rule: Rule) -> None:
        patterns = self._types.setdefault(rule.resource_type, _Patterns())
        named = patterns.named(rule.pattern_type)
        principals = named.get(rule.resource_name)
        if principals is None:
            principals = named[rule.resource_name] = {}
            if rule.pattern_type == PREFIXED:
                self._count_length(patterns, rule, 1)
        principals.setdefault(rule.principal, {}).setdefault(host_text(rule.host), _Cell()).add(rule)
        self._count += 1
        self.generation += 1

    def remove(self, rule: Rule) -> None:
        """rule: as it was added."""
        patterns = self._types[rule.resource_type]
        named = patterns.named(rule.pattern_type)
        principals = named[rule.resource_name]
        hosts = principals[rule.principal]
        host = host_text(rule.host)
        cell = hosts[host]
        cell.remove(rule)
        if not cell.rules:
            del hosts[host]
        if not hosts:
            del principals[rule.principal]
        if not principals:
            del named[rule.resource_name]
            if rule.pattern_type == PREFIXED:
                self._count_length(patterns, rule, -1)
        self._count -= 1
        self.generation += 1

    def masks(self, principal: str, host: str, resource_type: int, name: str) -> Masks:
        """principal: TYPE:NAME. host: from `host_text`."""
        allow = deny = 0
        matched = False
        own = resource_type == ResourceType.TOPIC and name in INTERNAL_TOPICS
        for pattern_type, pattern, principals in self._about(resource_type, name):
            matched = True
            reaches = not own or (pattern_type == LITERAL and pattern == name)
            for who in (principal, EVERYBODY):
                hosts = principals.get(who)
                if hosts is None:
                    continue
                for where in (host, WILDCARD):
                    cell = hosts.get(where)
                    if cell is not None:
                        allow |= cell.allow if reaches else cell.allow & ~_READ
                        deny |= cell.deny
        return Masks(allow, deny, matched)

    def fitting(self, principal: str, host: str, resource_type: int, name: str) -> Iterator[Rule]:
        """The rules that `masks` counts."""
        for _, _, principals in self._about(resource_type, name):
            for who in dict.fromkeys((principal, EVERYBODY)):
                for where in dict.fromkeys((host, WILDCARD)):
                    cell = principals.get(who, {}).get(where)
                    if cell is not None:
                        yield from cell.rules.values()

    def masks_of_patterns(self, principal: str, host: str, resource_type: int) -> Iterator[tuple[int, str, int, int]]:
        """Pattern type, name, allow and deny of each pattern that has rules which concern the client."""
        patterns = self._types.get(resource_type)
        for pattern_type in (LITERAL, PREFIXED) if patterns is not None else ():
            assert patterns is not None
            for name, principals in patterns.named(pattern_type).items():
                cells = [
                    cell
                    for who in (principal, EVERYBODY)
                    for where in (host, WILDCARD)
                    if (cell := principals.get(who, {}).get(where)) is not None
                ]
                if cells:
                    allow = deny = 0
                    for cell in cells:
                        allow |= cell.allow
                        deny |= cell.deny
                    yield pattern_type, name, allow, deny

    def has_pattern(self, resource_type: int, pattern_type: int, name: str) -> bool:
        patterns = self._types.get(resource_type)
        return patterns is not None and name in patterns.named(pattern_type)

    def _about(self, resource_type: int, name: str) -> Iterator[tuple[int, str, _Principals]]:
        """The patterns that match the name, each once."""
        patterns = self._types.get(resource_type)
        if patterns is None:
            return
        literal = patterns.literal
        exact = literal.get(name)
        if exact is not None:
            yield LITERAL, name, exact
        every = literal.get(WILDCARD)
        if every is not None and name != WILDCARD:
            yield LITERAL, WILDCARD, every
        prefixed, end = patterns.prefixed, len(name)
        for length in patterns.lengths:
            if length > end:
                return
            prefix = name[:length]
            principals = prefixed.get(prefix)
            if principals is not None:
                yield PREFIXED, prefix, principals

    def _count_length(self, patterns: _Patterns, rule: Rule, change: int) -> None:
        key = (rule.resource_type, len(rule.resource_name))
        before = self._lengths.get(key, 0)
        after = before + change
        if after:
            self._lengths[key] = after
        else:
            del self._lengths[key]
        if not before or not after:
            of_type = [length for resource_type, length in self._lengths if resource_type == rule.resource_type]
            patterns.lengths = tuple(sorted(of_type))


def operations_of(rule: Rule) -> int:
    """One bit for each operation that the rule allows or denies. Numbers that this software does not know: none."""
    if rule.operation == Operation.ALL:
        return EVERYTHING
    mask = (1 << rule.operation) & EVERYTHING if rule.operation >= 0 else 0
    if rule.permission_type == ALLOW and mask:
        for implied in IMPLIED.get(Operation(rule.operation), ()):
            mask |= 1 << implied
    return mask
