"""What an access rule says, and filters of rules: Kafka's AclBinding and AclBindingFilter (KIP-290).

Everything is checked as by Kafka's AclControlManager, so that a tool is refused for the same reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.brokers import AclCreation, DescribeAclsRequest, MatchingAcl
from quorumlog.security.acl.index import ALLOW, DENY, LITERAL, PREFIXED, WILDCARD, Rule
from quorumlog.security.authorizer import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from quorumlog.security.acl.authorizer import Verdict

ANY, MATCH = 1, 2  # Kafka's pattern types of filters; ANY is also that of types, operations and permissions
PATTERNS = {LITERAL: "LITERAL", PREFIXED: "PREFIXED"}
PERMISSIONS = {DENY: "DENY", ALLOW: "ALLOW"}


class AclContent(NamedTuple):
    """Two rules with the same content are the same rule. Numbers are Kafka's."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


def content_of(creation: AclCreation | MatchingAcl) -> AclContent:
    """As it stands."""
    return AclContent(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type if isinstance(creation, AclCreation) else creation.pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def checked(creation: AclCreation) -> AclContent:
    """Raises ApiError(INVALID_REQUEST)."""
    if creation.resource_type not in _TYPES:
        raise _invalid(f"Invalid resourceType {_name(_TYPES, creation.resource_type)}")
    if creation.resource_type == ResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not creation.resource_name:
        raise _invalid("Invalid empty resource name")
    if creation.resource_pattern_type not in PATTERNS:
        raise _invalid(f"Invalid patternType {_name(_PATTERN_FILTERS, creation.resource_pattern_type)}")
    if creation.operation not in _OPERATIONS:
        raise _invalid(f"Invalid operation {_name(_OPERATIONS, creation.operation)}")
    if creation.permission_type not in PERMISSIONS:
        raise _invalid(f"Invalid permissionType {_name(PERMISSIONS, creation.permission_type)}")
    if ":" not in creation.principal:
        text = "no colon is present separating the principal type from the principal name"
        raise _invalid(f"Could not parse principal from `{creation.principal}` ({text})")
    return content_of(creation)


def content_of_rule(rule: Rule) -> AclContent:
    return AclContent(
        rule.resource_type,
        rule.resource_name,
        rule.pattern_type,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission_type,
    )


def check_filter(wanted: DescribeAclsRequest) -> None:
    """Raises ApiError(INVALID_REQUEST)."""
    if wanted.resource_type_filter not in (ANY, *_TYPES) or wanted.pattern_type_filter not in _PATTERN_FILTERS:
        raise _invalid("Unknown patternFilter.")
    if wanted.operation not in (ANY, *_OPERATIONS) or wanted.permission_type not in (ANY, *PERMISSIONS):
        raise _invalid("Unknown entryFilter.")


def matches(wanted: DescribeAclsRequest, content: AclContent) -> bool:
    """wanted: checked."""
    return (
        wanted.resource_type_filter in (ANY, content.resource_type)
        and _matches_pattern(wanted, content)
        and wanted.principal_filter in (None, content.principal)
        and wanted.host_filter in (None, content.host)
        and wanted.operation in (ANY, content.operation)
        and wanted.permission_type in (ANY, content.permission_type)
    )


def only_match(wanted: DescribeAclsRequest) -> AclContent | None:
    """What a filter matches that leaves nothing open; None: it may match several rules."""
    name, principal, host = wanted.resource_name_filter, wanted.principal_filter, wanted.host_filter
    if name is None or principal is None or host is None or wanted.pattern_type_filter not in PATTERNS:
        return None
    if ANY in (wanted.resource_type_filter, wanted.operation, wanted.permission_type):
        return None
    kind, pattern_type = wanted.resource_type_filter, wanted.pattern_type_filter
    return AclContent(kind, name, pattern_type, principal, host, wanted.operation, wanted.permission_type)


def describe(content: AclContent) -> str:
    """For people and logs: `User:a may READ topic orders* from anywhere`."""
    name = f"{content.resource_name}*" if content.pattern_type == PREFIXED else content.resource_name
    may = "may" if content.permission_type == ALLOW else "must not"
    where = "from anywhere" if content.host == WILDCARD else f"from {content.host}"
    kind = _name(_TYPES, content.resource_type).lower()
    return f"{content.principal} {may} {_name(_OPERATIONS, content.operation)} {kind} {name} {where}"


def words_of(verdict: Verdict) -> str:
    """The rule that decides, or why there is none."""
    return verdict.why.value if verdict.rule is None else describe(content_of_rule(verdict.rule))


def _matches_pattern(wanted: DescribeAclsRequest, content: AclContent) -> bool:
    pattern_type, name = wanted.pattern_type_filter, wanted.resource_name_filter
    if pattern_type in PATTERNS and pattern_type != content.pattern_type:
        return False
    if name is None:
        return True
    if pattern_type != MATCH:
        return name == content.resource_name
    if content.pattern_type == PREFIXED:
        return name.startswith(content.resource_name)
    return content.resource_name in (name, WILDCARD)


_TYPES = {one.value: one.name for one in ResourceType if one != ResourceType.ANY}
_OPERATIONS = {one.value: one.name for one in Operation if one != Operation.ANY}
_PATTERN_FILTERS = {ANY: "ANY", MATCH: "MATCH", **PATTERNS}


def _name(names: dict[int, str], number: int) -> str:
    return names.get(number, "ANY" if number == ANY else "UNKNOWN")


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
