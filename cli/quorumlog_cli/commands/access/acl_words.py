"""Access rules as people write them: topic:orders, User:alice, read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from quorumlog.security.acl.content import AclContent
from quorumlog.security.acl.index import ALLOW, DENY, LITERAL, PREFIXED
from quorumlog.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from quorumlog_cli.terminal.errors import CliError, Exit

COLUMNS = ("RESOURCE", "PATTERN", "PRINCIPAL", "PERMISSION", "OPERATION", "HOST")
TYPES = {one.name.lower().replace("_", "-"): one for one in ResourceType if one != ResourceType.ANY}
OPERATIONS = {one.name.lower().replace("_", "-"): one for one in Operation if one != Operation.ANY}
PATTERNS = {"literal": LITERAL, "prefixed": PREFIXED}
PERMISSIONS = {"allow": ALLOW, "deny": DENY}

Resource = tuple[int, str]
PRODUCER = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
CONSUMER = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}
"""By type of resource: what kafka-acls gives by --producer and --consumer."""


def resource(text: str) -> Resource:
    """topic:NAME, group:NAME, transactional-id:NAME, user:NAME, delegation-token:NAME or cluster. Raises
    CliError(USAGE)."""
    kind, _, name = text.partition(":")
    number = TYPES.get(kind.lower().replace("_", "-"))
    if number == ResourceType.CLUSTER and name in ("", CLUSTER_NAME):
        return number, CLUSTER_NAME
    if number is None or not name or number == ResourceType.CLUSTER:
        known = ", ".join(f"{one}:NAME" for one in TYPES if one != "cluster")
        raise CliError(Exit.USAGE, f"{text!r} is no resource; write {known} or cluster")
    return number, name


def operation(text: str) -> Operation:
    """read, alter-configs, AlterConfigs, ALTER_CONFIGS. Raises CliError(USAGE)."""
    wanted = text.lower().replace("-", "").replace("_", "")
    for name, one in OPERATIONS.items():
        if name.replace("-", "") == wanted:
            return one
    raise CliError(Exit.USAGE, f"{text!r} is no operation; those are {', '.join(OPERATIONS)}")


def principal(text: str) -> str:
    """Raises CliError(USAGE)."""
    kind, _, name = text.partition(":")
    if not kind or not name:
        raise CliError(Exit.USAGE, f"{text!r} is no principal; write User:NAME, or 'User:*' for everybody")
    return text


def rules(
    resources: Sequence[Resource],
    operations: Sequence[Operation],
    principals: Sequence[tuple[str, int]],
    hosts: Sequence[str],
    pattern_type: int,
) -> Iterator[AclContent]:
    """Each combination. principals: with ALLOW or DENY."""
    for (kind, name), (who, permission), host, what in product(resources, principals, hosts, operations):
        yield AclContent(
            kind, name, LITERAL if kind == ResourceType.CLUSTER else pattern_type, who, host, what, permission
        )


def row(acl: AclContent) -> list[str]:
    document = as_document(acl)
    return [
        f"{document['resource']}",
        document["pattern"],
        document["principal"],
        document["permission"],
        document["operation"],
        document["host"],
    ]


def as_document(acl: AclContent) -> dict[str, Any]:
    """Numbers that this software does not know stay numbers."""
    kind = _word(TYPES, acl.resource_type)
    return {
        "resource": kind if kind == "cluster" else f"{kind}:{acl.resource_name}",
        "pattern": _word(PATTERNS, acl.pattern_type),
        "principal": acl.principal,
        "permission": _word(PERMISSIONS, acl.permission_type),
        "operation": _word(OPERATIONS, acl.operation),
        "host": acl.host,
    }


def _word(words: Any, number: int) -> str:
    return next((word for word, value in words.items() if value == number), str(number))
