"""Kafka's rule of access rules, as short as it can be said: it looks at every rule for every question."""

from __future__ import annotations

from collections.abc import Iterable

from quorumlog.messages.metadata_records import AccessControlEntryRecord as Rule

READ, WRITE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = 3, 4, 6, 7, 8, 10, 11
INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")


def may(rules: Iterable[Rule], who: str, host: str, operation: int, kind: int, name: str, everyone: bool) -> bool:
    about = [rule for rule in rules if rule.resource_type == kind and is_about(rule, name)]
    own = kind == 2 and name in INTERNAL and operation == READ
    mine = [rule for rule in about if rule.principal in (who, "User:*") and rule.host in (host, "*")]
    if any(rule.permission_type == 2 and rule.operation in (2, operation) for rule in mine):
        return False
    for rule in mine:
        literal = rule.pattern_type == 3 and rule.resource_name == name
        if rule.permission_type == 3 and allows(rule.operation, operation) and (literal or not own):
            return True
    return everyone and not about and not own


def is_about(rule: Rule, name: str) -> bool:
    if rule.pattern_type == 4:
        return name.startswith(rule.resource_name)
    return rule.resource_name in (name, "*")


def allows(allowed: int, operation: int) -> bool:
    if operation == DESCRIBE and allowed in (READ, WRITE, DELETE, ALTER):
        return True
    return allowed in (2, operation) or (operation == DESCRIBE_CONFIGS and allowed == ALTER_CONFIGS)


def may_any(
    rules: list[Rule], who: str, host: str, operation: int, kind: int, everyone: bool, names: list[str]
) -> bool:
    """names: enough to tell all patterns of the rules apart."""
    return any(may(rules, who, host, operation, kind, name, everyone) for name in names)
