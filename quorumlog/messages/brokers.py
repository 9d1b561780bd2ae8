"""What an operator asks about brokers as members of the cluster, and about access rules.

Written by `./dev proto` from proto/quorumlog/v1/brokers.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRequest:
    """Kafka's UnregisterBroker: the cluster forgets a broker that is gone for good.

    broker_epoch: Not in Kafka: the registration that is meant; -1: whichever there is.
    """

    broker_id: int
    broker_epoch: int = -1


@message(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerResponse:
    error_code: int = 0
    error_message: str = ""
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class DescribeAclsRequest:
    """Kafka's calls on access rules, refused (SECURITY_DISABLED) where no authorizer is on. Numbers of types,
    operations
    and permissions are Kafka's; an absent text matches every one.
    """

    resource_type_filter: int
    resource_name_filter: str | None = None
    pattern_type_filter: int = 3
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: int
    permission_type: int


@message(frozen=True, slots=True, kw_only=True)
class DescribeAclsResponse:
    """resources: In the order of patterns."""

    error_code: int = 0
    error_message: str = ""
    throttle_time_ms: int = 0
    resources: tuple[AclResource, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class AclResource:
    """The rules of one pattern of names."""

    resource_type: int
    resource_name: str
    pattern_type: int = 3
    acls: tuple[AclDescription, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class AclDescription:
    principal: str
    host: str
    operation: int
    permission_type: int


@message(frozen=True, slots=True, kw_only=True)
class CreateAclsRequest:
    creations: tuple[AclCreation, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class AclCreation:
    resource_type: int
    resource_name: str
    resource_pattern_type: int = 3
    principal: str
    host: str
    operation: int
    permission_type: int


@message(frozen=True, slots=True, kw_only=True)
class CreateAclsResponse:
    """results: In the order of the creations."""

    error_code: int = 0
    error_message: str = ""
    throttle_time_ms: int = 0
    results: tuple[AclResult, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class AclResult:
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class DeleteAclsRequest:
    filters: tuple[DescribeAclsRequest, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DeleteAclsResponse:
    """filter_results: In the order of the filters."""

    error_code: int = 0
    error_message: str = ""
    throttle_time_ms: int = 0
    filter_results: tuple[AclFilterResult, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class AclFilterResult:
    """matching_acls: The rules that are gone. What two filters match is told for both."""

    error_code: int = 0
    error_message: str = ""
    matching_acls: tuple[MatchingAcl, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class MatchingAcl:
    error_code: int = 0
    error_message: str = ""
    resource_type: int
    resource_name: str
    pattern_type: int = 3
    principal: str
    host: str
    operation: int
    permission_type: int
