"""The calls of consumer groups on Kafka's wire: bytes of Kafka's own classes, other clients' encoders, old versions."""

from __future__ import annotations

import dataclasses
import typing
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.errors import ErrorCode
from quorumlog.ids import ZERO_UUID
from quorumlog.messages import admin, groups
from quorumlog.wire.protocol.apis import BY_KEY, BY_REQUEST
from quorumlog.wire.protocol.versions import served_versions
from tests.parts import few
from tests.rules import rule
from tests.wire.call_frames import (
    Frames,
    check_foreign_reader,
    check_request,
    check_response,
    frames,
    golden_bytes,
    in_each_version,
)
from tests.wire.consumer_examples import CONSUMER_DESCRIBE, CONSUMER_HEARTBEAT
from tests.wire.example import TOPIC_ID, Example
from tests.wire.group_admin_examples import DESCRIBE
from tests.wire.group_examples import EXAMPLES
from tests.wire.member_examples import JOIN
from tests.wire.offset_examples import COMMIT, FETCH

BYTES = golden_bytes("group_messages.txt")
CASES = in_each_version(EXAMPLES)
NAMES = [f"{example.name}-{version}" for example, version in CASES]


# --- Kafka's own bytes ---


def test_every_version_has_an_example() -> None:
    assert {(one.key, one.oldest, one.newest) for one in EXAMPLES} == {
        (api.key, api.oldest, api.newest)
        for api in BY_REQUEST.values()
        if api.method.request.__module__ == groups.__name__
        or api.method.request in (admin.FindCoordinatorRequest, admin.ListGroupsRequest)
    }
    assert len(BYTES) == 2 * len(CASES)


@pytest.mark.parametrize(("example", "version"), CASES, ids=NAMES)
def test_requests_have_kafkas_bytes(example: Example, version: int) -> None:
    check_request(BYTES, example, version)


@pytest.mark.parametrize(("example", "version"), CASES, ids=NAMES)
def test_responses_have_kafkas_bytes(example: Example, version: int) -> None:
    check_response(BYTES, example, version)


@pytest.mark.parametrize("example", EXAMPLES, ids=[one.name for one in EXAMPLES])
def test_the_newest_version_says_everything_of_a_response(example: Example) -> None:
    body, wire = BYTES[f"{example.name}Response", example.newest], frames(example, example.newest)
    response = example.our_response(example.newest)
    found = wire.read_response(example.our_request(example.newest), body)
    assert without_names(found) == without_names(response)


def without_names(response: Any) -> Any:
    """The newest OffsetCommit and OffsetFetch name topics by their ids alone."""
    if isinstance(response, groups.OffsetCommitResponse | groups.OffsetFetchGroupResult):
        return dataclasses.replace(
            response, topics=tuple(dataclasses.replace(topic, name="") for topic in response.topics)
        )
    if isinstance(response, groups.OffsetFetchResponse):
        return dataclasses.replace(response, groups=tuple(without_names(group) for group in response.groups))
    return response


# --- kafka-python, whose codec is made from Kafka's schemas at run time; it has none of the consumer protocol ---

KAFKA_PYTHON = {one.key: "admin" if one.name in ("DescribeGroups", "ListGroups", "DeleteGroups") else "consumer"
                for one in EXAMPLES if one not in (CONSUMER_HEARTBEAT, CONSUMER_DESCRIBE)}  # fmt: skip
FOREIGN = [(example, version) for example, version in CASES if example.key in KAFKA_PYTHON]


def foreign(example: Example, side: str) -> Any:
    module = import_module("kafka.protocol." + {10: "metadata"}.get(example.key, KAFKA_PYTHON[example.key]))
    return getattr(module, f"{example.name}{side}")


@pytest.mark.parametrize(("example", "version"), FOREIGN, ids=[f"{one.name}-{version}" for one, version in FOREIGN])
def test_kafka_python_reads_our_response(example: Example, version: int) -> None:
    kind = foreign(example, "Response")
    if version > kind.max_version:
        pytest.skip(f"kafka-python knows {example.name} up to version {kind.max_version}")
    check_foreign_reader(kind, example, version)


# --- what a message says survives every byte ---

TEXTS = st.sampled_from(["", "g", "grüppe", "x" * 300])
VALUES = {
    int: st.sampled_from([-1, 0, 1, 5, 127]),
    str: TEXTS,
    bool: st.booleans(),
    bytes: st.sampled_from([b"", b"\1", bytes(16), bytes(range(200))]),
}


def built(kind: Any) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{one.name: value_of(one.name, hints[one.name]) for one in dataclasses.fields(kind)})


def value_of(name: str, hint: Any) -> st.SearchStrategy[Any]:
    arguments = typing.get_args(hint)
    if name == "topic_id":
        return st.sampled_from([TOPIC_ID, bytes(reversed(TOPIC_ID))])
    if name in ("takes_member_id", "takes_skip_assignment", "takes_member_epoch", "chooses_member_id"):
        return st.just(True)
    if name == "retention_time_ms":
        return st.just(-1)
    if typing.get_origin(hint) is tuple:
        return st.lists(value_of(name, arguments[0]), max_size=3).map(tuple)
    if type(None) in arguments:
        inner = value_of(name, next(one for one in arguments if one is not type(None)))
        return inner if name in ("protocol_type", "protocol_name") else st.none() | inner
    return built(hint) if dataclasses.is_dataclass(hint) else VALUES[hint]


def nameless(request: Any) -> Any:
    if isinstance(request, groups.OffsetCommitRequest):
        return without_topic_names(request)
    if isinstance(request, groups.OffsetFetchRequest):
        named = [group if group.topics is None else dataclasses.replace(group, topics=without_topic_names(group.topics))
                 for group in request.groups]  # fmt: skip
        return dataclasses.replace(request, groups=tuple(named))
    return request


def without_topic_names(part: Any) -> Any:
    return dataclasses.replace(part, topics=tuple(dataclasses.replace(topic, name="") for topic in part.topics))


@pytest.mark.parametrize("example", EXAMPLES, ids=[one.name for one in EXAMPLES])
@settings(max_examples=few(30), deadline=None)
@given(data=st.data())
def test_any_request_survives_the_newest_version(example: Example, data: st.DataObject) -> None:
    wire = frames(example, example.newest)
    request = data.draw(built(wire.api.method.request))
    assert wire.read_request(wire.write_request(request)).request == nameless(request)


# --- the consumer protocol ---


@pytest.mark.parametrize("version", [0, 1])
def test_who_makes_the_id_of_a_member(version: int) -> None:
    """The broker in version 0, the member itself from version 1 on (KIP-1082)."""
    body = BYTES["ConsumerGroupHeartbeatRequest", version]
    assert frames(CONSUMER_HEARTBEAT, version).read_request(body).request.chooses_member_id == (version == 1)
    request = CONSUMER_HEARTBEAT.our_request(version)
    assert BY_REQUEST[type(request)].version_for(request, 1) == version


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("left_out", [None, ()])
def test_what_has_not_changed_is_null(version: int, left_out: tuple[()] | None) -> None:
    """None and nothing differ: a member that owns no partition, and one that does not say."""
    wire = frames(CONSUMER_HEARTBEAT, version)
    request = groups.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=3,
        subscribed_topic_names=None if left_out is None else groups.SubscribedTopicNames(names=left_out),
        topic_partitions=None if left_out is None else groups.MemberTopicPartitions(topic_partitions=left_out),
        chooses_member_id=version == 1,
    )
    assert wire.read_request(wire.write_request(request)).request == request


LISTED = (0, 14, 15, 16, 24, 25, 29, 30, 35, 42, 69, 81, 82, 110, 111, 112, 128)  # what clients live with


@rule("group 5.8")
@pytest.mark.parametrize(
    ("code", "told"),
    [
        (-1, 15),
        (3, 15),
        (5, 15),
        (7, 15),
        (19, 15),
        (20, 15),
        (6, 16),
        (74, 16),
        (56, 16),
        *((code, code) for code in LISTED),
    ],
)
def test_no_heartbeat_ends_a_client_by_an_error_that_passes(code: int, told: int) -> None:
    """However the answer is written: by the fast path, as by default, or with the schema."""
    wire, request = frames(CONSUMER_HEARTBEAT, 1), CONSUMER_HEARTBEAT.our_request(1)
    response = groups.ConsumerGroupHeartbeatResponse(error_code=code, error_message="why")
    found = wire.read_response(request, wire.write_response(request, response))
    assert (found.error_code, found.error_message) == (told, "why")
    values = wire.api.write_response(response, request, 1)
    assert (values["error_code"], values["error_message"]) == (told, "why")


# --- old versions ---


@pytest.mark.parametrize("version", range(10))
def test_a_join_tells_what_its_member_understands(version: int) -> None:
    """MEMBER_ID_REQUIRED came with version 4 (KIP-394), `skipAssignment` with version 9 (KIP-814)."""
    request = frames(JOIN, version).read_request(BYTES["JoinGroupRequest", version]).request
    assert (request.takes_member_id, request.takes_skip_assignment) == (version >= 4, version == 9)
    assert (request.group_instance_id is not None) == (version >= 5)


@pytest.mark.parametrize("version", range(10))
def test_a_join_that_is_refused_can_be_read_in_every_version(version: int) -> None:
    wire = Frames(BY_KEY[11], version)
    refused = groups.JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m1")
    found = wire.read_response(None, wire.write_response(None, refused))
    assert (found.error_code, found.member_id, found.generation_id, found.leader) == (79, "m1", -1, "")


def test_a_sync_must_name_its_protocol_once_it_can() -> None:
    """A null name is not the group's, and not one that an old version could not send."""
    request = groups.SyncGroupRequest(group_id="g", generation_id=1, member_id="m")
    for version in range(6):
        wire = Frames(BY_KEY[14], version)
        found = wire.read_request(wire.write_request(request)).request
        want = "" if version >= 5 else None
        assert (found.protocol_type, found.protocol_name) == (want, want)


@rule("group 4.2")
@pytest.mark.parametrize(("version", "code"), [(8, 22), (9, 69), (10, 69)])
def test_a_commit_to_no_group_has_the_error_that_its_version_knows(version: int, code: int) -> None:
    wire, request = frames(COMMIT, version), COMMIT.our_request(version)
    found = wire.read_response(request, wire.write_response(request, COMMIT.our_response(version)))
    assert [one.error_code for one in found.topics[0].partitions] == [0, code]


@pytest.mark.parametrize("version", range(2, 11))
def test_a_member_that_knows_no_epochs_sends_no_version_that_has_them(version: int) -> None:
    request = COMMIT.our_request(version)
    assert request.takes_member_epoch == (version >= 9)
    assert BY_REQUEST[type(request)].version_for(request, version) == version
    assert BY_REQUEST[type(request)].version_for(request, 9) == max(8, min(version, 9))


@pytest.mark.parametrize("version", range(1, 11))
def test_an_error_of_the_group_reaches_who_fetches_its_offsets(version: int) -> None:
    wire, request = frames(FETCH, version), FETCH.our_request(version)
    refused = [groups.OffsetFetchGroupResult(group_id=one.group_id, error_code=16) for one in request.groups]
    response = groups.OffsetFetchResponse(groups=tuple(refused))
    found = wire.read_response(request, wire.write_response(request, response))
    if version == 1:
        assert [(one.index, one.error_code) for one in found.groups[0].topics[0].partitions] == [(1, 16), (2, 16)]
    else:
        assert [(one.group_id, one.error_code) for one in found.groups] == [
            (one.group_id, 16) for one in request.groups
        ]


@rule("group 4.16")
@pytest.mark.parametrize(("version", "code", "message"), [(5, 0, ""), (6, 69, "no such group")])
def test_a_group_that_does_not_exist_is_dead(version: int, code: int, message: str) -> None:
    wire, request = frames(DESCRIBE, version), DESCRIBE.our_request(version)
    found = wire.read_response(request, wire.write_response(request, DESCRIBE.our_response(version)))
    assert (found.groups[1].group_state, found.groups[1].error_code) == ("Dead", code)
    assert found.groups[1].error_message == message


@rule("group 4.11")
@pytest.mark.parametrize(("version", "topics"), [(1, False), (2, True), (9, True)])
def test_all_offsets_of_a_group_are_asked_for_by_null(version: int, topics: bool) -> None:
    request = groups.OffsetFetchRequest(groups=(groups.OffsetFetchGroup(group_id="g"),))
    wire = Frames(BY_KEY[9], version)
    found = wire.read_request(wire.write_request(request)).request.groups[0].topics
    assert found is None if topics else found is not None and found.topics == ()


@rule("group 4.10")
@pytest.mark.parametrize(("version", "names"), [(9, ["there", "gone"]), (10, [""])])
def test_offsets_of_a_topic_without_an_id_are_skipped_where_ids_name_topics(version: int, names: list[str]) -> None:
    topics = tuple(
        groups.OffsetFetchTopicResult(
            name=name, topic_id=topic_id, partitions=(groups.OffsetFetchPartition(index=0, committed_offset=1),)
        )
        for name, topic_id in (("there", TOPIC_ID), ("gone", b""))
    )
    request = groups.OffsetFetchRequest(groups=(groups.OffsetFetchGroup(group_id="g"),))
    response = groups.OffsetFetchResponse(groups=(groups.OffsetFetchGroupResult(group_id="g", topics=topics),))
    wire = Frames(BY_KEY[9], version)
    found = wire.read_response(request, wire.write_response(request, response))
    assert [topic.name for topic in found.groups[0].topics] == names


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (COMMIT.our_request(10), 10),
        (COMMIT.our_request(9), 9),
        (groups.OffsetCommitRequest(group_id="g"), 10),
        (FETCH.our_request(9), 9),
        (FETCH.our_request(10), 9),
        (groups.OffsetFetchRequest(groups=FETCH.our_request(10).groups[:1]), 10),
    ],
    ids=["commit ids", "commit names", "commit nothing", "fetch names", "fetch all", "fetch ids"],
)
def test_a_client_uses_the_newest_version_that_can_say_it(request_: Any, version: int) -> None:
    assert BY_REQUEST[type(request_)].version_for(request_, 10) == version
    assert BY_REQUEST[type(request_)].version_for(request_, 6) == 6


def test_metadata_of_16_zeros_is_not_taken_for_a_missing_id() -> None:
    request = groups.SyncGroupRequest(
        group_id="g",
        generation_id=1,
        member_id="m",
        protocol_type="",
        protocol_name="",
        assignments=(
            groups.MemberAssignment(member_id="a", assignment=ZERO_UUID),
            groups.MemberAssignment(member_id="b", assignment=b""),
        ),
    )
    wire = Frames(BY_KEY[14], 5)
    assert wire.read_request(wire.write_request(request)).request == request


# --- what is announced ---


def test_groups_are_announced_where_they_have_handlers() -> None:
    everything = {example.key: (example.oldest, example.newest) for example in EXAMPLES}
    announced = served_versions(None, authenticates=False)
    assert {key: announced[key] for key in everything} == everything
    assert not {76, 77, 78, 79, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92} & set(announced)  # share and streams groups


def test_what_has_no_handler_is_not_announced() -> None:
    served = (admin.FindCoordinatorRequest, admin.ListGroupsRequest)
    announced = served_versions(served, authenticates=False)
    assert (announced[10], announced[16]) == ((0, 6), (0, 5))
    assert not {8, 9, 11, 12, 13, 14, 15, 42, 47} & set(announced)
