"""Kafka's rule of access rules, as short as it can be said: every rule is looked at for every question.

Numbers are Kafka's. Source: KIP-11, KIP-290, StandardAuthorizer; decision 128 for the cluster's own topics.
"""

from __future__ import annotations

from collections.abc import Collection

from quorumlog.messages.metadata_records import AccessControlEntryRecord as Rule
from quorumlog.security.authorizer import Operation
from quorumlog.security.principal import Principal

READ, DESCRIBE = 3, 8
_IMPLY = {DESCRIBE: (3, 4, 6, 7), 10: (11,)}  # an ALLOW of one of these allows the first
_OWN = ("__consumer_offsets", "__transaction_state", "__share_group_state")
_OPERATIONS = tuple(int(operation) for operation in Operation if operation > Operation.ALL)


def may(rules: Collection[Rule], who: Principal, host: str, operation: int, kind: int, name: str) -> bool:
    mine = [
        rule
        for rule in rules
        if rule.resource_type == kind
        and (name.startswith(rule.resource_name) if rule.pattern_type == 4 else rule.resource_name in (name, "*"))
        and rule.principal in (str(who), "User:*")
        and rule.host in (host, "*")
    ]
    if any(rule.permission_type == 2 and rule.operation in (2, operation) for rule in mine):
        return False
    own = kind == 2 and operation == READ and name in _OWN
    return any(
        rule.permission_type == 3
        and (rule.operation in (2, operation) or rule.operation in _IMPLY.get(operation, ()))
        and (not own or (rule.pattern_type == 3 and rule.resource_name == name))
        for rule in mine
    )


def all_of(rules: Collection[Rule], who: Principal, host: str, kind: int, name: str) -> int:
    """One bit for each operation."""
    return sum(may(rules, who, host, operation, kind, name) << operation for operation in _OPERATIONS)
