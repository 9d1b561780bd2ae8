"""CreateAcls and DeleteAcls: which rules are written and removed, and how a request is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from controller_world import World
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import FeatureUpdate, UpdateFeaturesRequest
from quorumlog.messages.brokers import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    MatchingAcl,
)
from quorumlog.messages.metadata_records import (
    AccessControlEntryRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
)
from quorumlog_quorum.controller.engine.limits import MAX_ACLS_PER_REQUEST
from quorumlog_quorum.controller.requests import acls
from quorumlog_quorum.metadata.image import hash_of

READ = AclCreation(resource_type=2, resource_name="a", principal="User:alice", host="*", operation=3, permission_type=3)
ALL = DescribeAclsRequest(resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1)


def world(**config: Any) -> World:
    return World(access_rules=True, **config)


def create(on: World, *creations: AclCreation) -> list[tuple[int, str]]:
    response = on.ask(CreateAclsRequest(creations=creations))
    return [(one.error_code, one.error_message) for one in response.results]


def delete(on: World, *filters: DescribeAclsRequest) -> list[tuple[int, int]]:
    """The error of each filter, and how many rules it matched."""
    response = on.ask(DeleteAclsRequest(filters=filters))
    return [(one.error_code, len(one.matching_acls)) for one in response.filter_results]


def names(on: World) -> list[str]:
    return sorted(f"{one.resource_name}{'*' if one.pattern_type == 4 else ''}" for one in on.tip.rule_ids)


def test_a_rule_is_written_with_an_id_of_its_own() -> None:
    on = world()
    before = len(on.log)
    assert create(on, READ, replace(READ, host="h")) == [(0, ""), (0, "")]
    records = on.log[before:]
    assert all(isinstance(record, AccessControlEntryRecord) for record in records)
    assert on.driver.batches[-1] == 2
    assert len({record.id for record in records if isinstance(record, AccessControlEntryRecord)}) == 2
    assert on.tip.state_hash == hash_of(on.tip)


def test_a_rule_that_is_there_succeeds_without_a_record() -> None:
    on = world()
    assert create(on, READ, READ) == [(0, ""), (0, "")]
    end = len(on.log)
    assert create(on, READ) == [(0, "")]
    assert len(on.log) == end
    assert len(on.tip.rule_ids) == 1
    assert create(on, replace(READ, permission_type=2)) == [(0, "")]
    assert len(on.tip.rule_ids) == 2


REFUSED = [
    ("type UNKNOWN", {"resource_type": 0}, "Invalid resourceType UNKNOWN"),
    ("type ANY", {"resource_type": 1}, "Invalid resourceType ANY"),
    ("a type that nobody knows", {"resource_type": 8}, "Invalid resourceType UNKNOWN"),
    ("pattern UNKNOWN", {"resource_pattern_type": 0}, "Invalid patternType UNKNOWN"),
    ("pattern ANY", {"resource_pattern_type": 1}, "Invalid patternType ANY"),
    ("pattern MATCH", {"resource_pattern_type": 2}, "Invalid patternType MATCH"),
    ("operation UNKNOWN", {"operation": 0}, "Invalid operation UNKNOWN"),
    ("operation ANY", {"operation": 1}, "Invalid operation ANY"),
    ("operation that nobody knows", {"operation": -5}, "Invalid operation UNKNOWN"),
    ("permission UNKNOWN", {"permission_type": 0}, "Invalid permissionType UNKNOWN"),
    ("permission ANY", {"permission_type": 1}, "Invalid permissionType ANY"),
    ("no name", {"resource_name": ""}, "Invalid empty resource name"),
    (
        "another cluster",
        {"resource_type": 4, "resource_name": "mine"},
        "The only valid name for the CLUSTER resource is kafka-cluster",
    ),
    (
        "no colon",
        {"principal": "alice"},
        "Could not parse principal from `alice` "
        "(no colon is present separating the principal type from the principal name)",
    ),
]


@pytest.mark.parametrize(("change", "why"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_refused_rule_does_not_stop_the_others(change: dict[str, Any], why: str) -> None:
    on = world()
    other = replace(READ, resource_name="b")
    refused = (ErrorCode.INVALID_REQUEST, why)
    assert create(on, READ, replace(READ, **change), other) == [(0, ""), refused, (0, "")]
    assert names(on) == ["a", "b"]


def test_what_kafka_takes_is_taken() -> None:
    """A principal of any type, a DENY, the cluster, a type of resource that we do not use."""
    on = world()
    taken = [
        replace(READ, principal="Group:x:y"),
        replace(READ, principal="User:"),
        replace(READ, permission_type=2, operation=2),
        replace(READ, resource_type=4, resource_name="kafka-cluster"),
        replace(READ, resource_type=6, resource_name="token", operation=8),
        replace(READ, resource_name="*", resource_pattern_type=4),
    ]
    assert create(on, *taken) == [(0, "")] * len(taken)


def test_rules_are_refused_where_nobody_enforces_them() -> None:
    on = World()
    for request in (CreateAclsRequest(creations=(READ,)), DeleteAclsRequest(filters=(ALL,))):
        with pytest.raises(ApiError, match=r"set authorizer\.class\.name") as raised:
            on.ask(request)
        assert raised.value.code is ErrorCode.SECURITY_DISABLED


def test_rules_need_a_level_that_has_them() -> None:
    on = world(log=(FeatureLevelRecord(name="metadata.version", level=4),))
    for request in (CreateAclsRequest(creations=(READ,)), DeleteAclsRequest(filters=(ALL,))):
        with pytest.raises(ApiError, match=r"need metadata\.version 5, and 4") as raised:
            on.ask(request)
        assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_too_many_rules_are_refused_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "MAX_ACLS_PER_REQUEST", 20)
    on = world()
    many = tuple(replace(READ, resource_name=f"t{number}") for number in range(21))
    with pytest.raises(ApiError, match="21 access rules in a request, limit 20") as raised:
        create(on, *many)
    assert raised.value.code is ErrorCode.POLICY_VIOLATION
    assert not on.tip.rule_ids
    assert create(on, *many[:20]) == [(0, "")] * 20
    assert create(on, many[-1]) == [(0, "")]
    before = on.tip
    with pytest.raises(ApiError, match="Cannot remove more than 20 acls") as raised:
        delete(on, replace(ALL, principal_filter="User:alice"))
    assert raised.value.code is ErrorCode.INVALID_REQUEST
    with pytest.raises(ApiError, match="21 filters in a request, limit 20") as raised:
        delete(on, *(ALL,) * 21)
    assert raised.value.code is ErrorCode.INVALID_REQUEST
    assert on.tip is before
    assert delete(on, replace(ALL, resource_name_filter="t0")) == [(0, 1)]
    assert delete(on, ALL) == [(0, 20)]
    assert on.driver.batches[-1] == 20
    assert not on.tip.rule_ids and not on.tip.access


def test_kafkas_limit() -> None:
    assert MAX_ACLS_PER_REQUEST == 10_000


PATTERNS = [
    ("a name, literal", {"resource_name_filter": "ab", "pattern_type_filter": 3}, ["ab"]),
    ("a name, prefixed", {"resource_name_filter": "a", "pattern_type_filter": 4}, ["a*"]),
    ("a name, in either", {"resource_name_filter": "a"}, ["a", "a*"]),
    ("what applies to a name", {"resource_name_filter": "ab", "pattern_type_filter": 2}, ["*", "a*", "ab"]),
    ("what applies to any name", {"pattern_type_filter": 2}, ["*", "a", "a*", "ab", "b*"]),
    ("the name *", {"resource_name_filter": "*", "pattern_type_filter": 3}, ["*"]),
    ("all literal ones", {"pattern_type_filter": 3}, ["*", "a", "ab"]),
    ("all prefixed ones", {"pattern_type_filter": 4}, ["a*", "b*"]),
    ("all topics", {"resource_type_filter": 2}, ["*", "a", "a*", "ab", "b*"]),
    ("all groups", {"resource_type_filter": 3}, []),
    ("a principal", {"principal_filter": "User:alice"}, ["*", "a", "a*", "ab", "b*"]),
    ("another principal", {"principal_filter": "User:*"}, []),
    ("a host", {"host_filter": "*"}, ["*", "a", "a*", "ab", "b*"]),
    ("another host", {"host_filter": ""}, []),
    ("an operation", {"operation": 3}, ["*", "a", "a*", "ab", "b*"]),
    ("ALL is no wildcard", {"operation": 2}, []),
    ("a permission", {"permission_type": 3}, ["*", "a", "a*", "ab", "b*"]),
    ("another permission", {"permission_type": 2}, []),
]


@pytest.mark.parametrize(("change", "gone"), [case[1:] for case in PATTERNS], ids=[case[0] for case in PATTERNS])
def test_what_a_filter_matches_is_removed(change: dict[str, Any], gone: list[str]) -> None:
    on = world()
    there = [(name, 3) for name in ("*", "a", "ab")] + [(name, 4) for name in ("a", "b")]
    create(on, *(replace(READ, resource_name=name, resource_pattern_type=kind) for name, kind in there))
    before = names(on)
    assert delete(on, replace(ALL, **change)) == [(0, len(gone))]
    assert names(on) == sorted(set(before) - set(gone))


@pytest.mark.parametrize(
    "change",
    [
        {"resource_type_filter": 0},
        {"resource_type_filter": 99},
        {"pattern_type_filter": 0},
        {"pattern_type_filter": 5},
        {"operation": 0},
        {"operation": 16},
        {"permission_type": 0},
        {"permission_type": 4},
    ],
    ids=str,
)
def test_a_filter_of_what_nobody_knows_is_refused_alone(change: dict[str, Any]) -> None:
    on = world()
    create(on, READ)
    assert delete(on, replace(ALL, **change), ALL) == [(ErrorCode.INVALID_REQUEST, 0), (0, 1)]


def test_what_two_filters_match_is_removed_once_and_told_for_both() -> None:
    on = world()
    create(on, READ)
    exact = replace(
        ALL,
        resource_type_filter=2,
        resource_name_filter="a",
        pattern_type_filter=3,
        principal_filter="User:alice",
        host_filter="*",
        operation=3,
        permission_type=3,
    )
    end = len(on.log)
    response = on.ask(DeleteAclsRequest(filters=(ALL, exact)))
    told = MatchingAcl(
        resource_type=2,
        resource_name="a",
        pattern_type=3,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    assert [one.matching_acls for one in response.filter_results] == [(told,), (told,)]
    assert [type(record) for record in on.log[end:]] == [RemoveAccessControlEntryRecord]
    assert delete(on, exact) == [(0, 0)]


def test_two_requests_run_one_after_the_other_although_the_search_is_cut() -> None:
    on = world(max_slice_work=2)
    create(on, *(replace(READ, resource_name=f"t{number}") for number in range(9)))
    deletes = on.begin(DeleteAclsRequest(filters=(ALL,)))
    creates = on.begin(CreateAclsRequest(creations=(replace(READ, resource_name="t3"),)))
    downgrades = on.begin(
        UpdateFeaturesRequest(updates=(FeatureUpdate(name="metadata.version", level=4, upgrade_type=2),), timeout_ms=1)
    )
    assert not deletes.done and not creates.done and downgrades.done
    on.finish()
    assert len(deletes.response.filter_results[0].matching_acls) == 9
    assert creates.response.results[0].error_code == ErrorCode.NONE
    assert names(on) == ["t3"], "what was made after the removal stays"


def test_rules_outlive_the_controller() -> None:
    on = world()
    create(on, READ)
    on.new_controller()
    assert names(on) == ["a"]
    end = len(on.log)
    assert create(on, READ) == [(0, "")]
    assert RemoveAccessControlEntryRecord not in map(type, on.log[end:])
    assert AccessControlEntryRecord not in map(type, on.log[end:])
    assert delete(on, ALL) == [(0, 1)]


contents = st.tuples(st.sampled_from("ab*"), st.sampled_from([3, 4]), st.sampled_from(["User:x", "User:*"]))
steps = st.lists(st.tuples(st.booleans(), st.lists(contents, max_size=4)), max_size=12)


@given(steps, st.integers(1, 60))
def test_after_any_history_the_rules_are_those_that_a_set_has(
    history: list[tuple[bool, list[tuple[str, int, str]]]], max_slice_work: int
) -> None:
    on, model = world(max_slice_work=max_slice_work), set[tuple[str, int, str]]()
    for creates, which in history:
        if creates:
            made = [
                replace(READ, resource_name=name, resource_pattern_type=kind, principal=who)
                for name, kind, who in which
            ]
            assert create(on, *made) == [(0, "")] * len(made)
            model |= set(which)
            continue
        filters = [replace(ALL, resource_name_filter=name, pattern_type_filter=kind) for name, kind, _ in which]
        found = [{one for one in model if one[:2] == (name, kind)} for name, kind, _ in which]
        assert delete(on, *filters) == [(0, len(one)) for one in found]
        model -= set().union(*found)
    assert {(one.resource_name, one.pattern_type, one.principal) for one in on.tip.rule_ids} == model
    assert on.tip.state_hash == hash_of(on.tip)
