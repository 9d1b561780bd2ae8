"""Access rules in words."""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.security.acl.content import PATTERNS, PERMISSIONS, AclContent
from quorumlog.security.authorizer import Operation, ResourceType


class RuleRow(NamedTuple):
    principal: str
    permission: str
    operation: str
    resource: str
    pattern: str
    host: str


def rule_row(rule: AclContent) -> RuleRow:
    """A number that has no name here stays a number: a newer cluster may have more."""
    return RuleRow(
        rule.principal,
        PERMISSIONS.get(rule.permission_type, str(rule.permission_type)).lower(),
        _name(Operation, rule.operation),
        f"{_name(ResourceType, rule.resource_type)} {rule.resource_name}",
        PATTERNS.get(rule.pattern_type, str(rule.pattern_type)).lower(),
        rule.host,
    )


def _name(kind: type[Operation] | type[ResourceType], number: int) -> str:
    try:
        return kind(number).name.lower().replace("_", " ")
    except ValueError:
        return str(number)
