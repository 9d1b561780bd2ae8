"""The comparer must be able to fail: each wrong field that is planted into an answer is found, and nothing else is."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from differential.compare import ABSENT, Difference, differences
from differential.conversation import CLOSED, SILENT
from differential.run import learn
from differential.sequences import prefix_of
from differential.step import NO_ID, Batch, Book, Ref, Step
from differential.wanted import WANTED, Wanted, explaining
from quorumlog.records.format.batch import Codec

PREFIX = prefix_of(7, 0)
TOPIC = PREFIX + "a"
STEP = Step(api="metadata", version=12, values={"topics": [{"name": TOPIC, "topic_id": NO_ID}]})
FETCH = Step(api="fetch", version=17, values={"topics": []})


def books() -> tuple[Book, Book]:
    """Each side has given out an id of its own for the same topic and the same producer."""
    made = Book(), Book()
    for side, book in enumerate(made):
        book.learn("topic", TOPIC, bytes([side + 1]) * 16)
        book.learn("topic", PREFIX + "b", bytes([side + 11]) * 16)
        book.learn("producer", "p1", 1_000 + side)
        book.learn("member", "g1:m1", f"client-{side}" * 6)
    return made


def metadata(side: int) -> dict[str, Any]:
    partition = {"error_code": 0, "partition_index": 0, "leader_id": 1, "leader_epoch": 0, "replica_nodes": (1,)}
    topic = {"error_code": 0, "name": TOPIC, "topic_id": bytes([side + 1]) * 16, "partitions": [partition]}
    broker = {"node_id": 1, "host": "127.0.0.1", "port": 9_000 + side, "rack": None}
    return {"throttle_time": side, "cluster_id": f"c{side}", "controller_id": 1, "brokers": [broker], "topics": [topic]}


def found(theirs: Any, ours: Any, step: Step = STEP) -> list[Difference]:
    return differences(step, theirs, ours, books(), PREFIX)


def test_what_must_differ_is_no_difference() -> None:
    assert found(metadata(0), metadata(1)) == []


PLANTED: list[tuple[tuple[Any, ...], Any, str]] = [
    (("controller_id",), 2, "controller_id"),
    (("topics", 0, "error_code"), 3, f"topics[{TOPIC}:<{TOPIC}>].error_code"),
    (("topics", 0, "partitions", 0, "leader_epoch"), 1, f"topics[{TOPIC}:<{TOPIC}>].partitions[0].leader_epoch"),
    (("topics", 0, "partitions", 0, "replica_nodes"), (1, 2), f"topics[{TOPIC}:<{TOPIC}>].partitions[0].replica_nodes"),
    (("brokers", 0, "host"), "localhost", "brokers[1].host"),
    (("brokers", 0, "rack"), "r", "brokers[1].rack"),
    (("cluster_id",), None, "cluster_id"),
]


@pytest.mark.parametrize(("place", "value", "path"), PLANTED, ids=[path for *_, path in PLANTED])
def test_a_wrong_field_is_found(place: tuple[Any, ...], value: Any, path: str) -> None:
    ours = metadata(1)
    target: Any = ours
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    assert [one.path for one in found(metadata(0), ours)] == [path]


def test_a_lost_field_a_lost_element_and_one_too_many_are_found() -> None:
    lost, fewer, more = metadata(1), metadata(1), metadata(1)
    del lost["controller_id"]
    fewer["topics"][0]["partitions"] = []
    more["brokers"].append({**more["brokers"][0], "node_id": 2})
    assert found(metadata(0), lost) == [Difference("controller_id", 1, ABSENT)]
    assert [one.ours for one in found(metadata(0), fewer)] == [ABSENT]
    assert [one.theirs for one in found(metadata(0), more)] == [ABSENT]


def test_the_id_of_another_topic_is_found_although_ids_differ() -> None:
    ours = metadata(1)
    ours["topics"][0]["topic_id"] = bytes([12]) * 16
    assert [one.path for one in found(metadata(0), ours)] == [
        f"topics[{TOPIC}:<{TOPIC}>]", f"topics[{TOPIC}:<{PREFIX}b>]",
    ]  # fmt: skip
    ours["topics"][0]["topic_id"] = bytes([99]) * 16
    assert len(found(metadata(0), ours)) == 2


def test_an_answer_and_a_closed_connection_differ() -> None:
    assert found(metadata(0), CLOSED)[0].path == ""
    assert found(CLOSED, CLOSED) == []


def test_order_does_not_count_and_the_same_twice_counts_once() -> None:
    one = metadata(0)
    one["topics"].append({**one["topics"][0], "name": PREFIX + "b", "topic_id": bytes([11]) * 16})
    other = metadata(1)
    other["topics"].insert(0, {**other["topics"][0], "name": PREFIX + "b", "topic_id": bytes([12]) * 16})
    assert found(one, other) == []
    other["topics"].append(copy.deepcopy(other["topics"][1]))
    assert found(one, other) == []
    other["topics"].append({**other["topics"][1], "error_code": 3})
    assert len(found(one, other)) == 1


def test_topics_of_other_sequences_are_left_out() -> None:
    ours = metadata(1)
    ours["topics"].append({**ours["topics"][0], "name": prefix_of(8, 0) + "a"})
    assert found(metadata(0), ours) == []


def fetched(side: int, **changes: Any) -> dict[str, Any]:
    book = books()[side]
    batch = Batch(
        rows=((b"k", b"v"), (None, None)), times=(5, 6), producer=Ref("producer", "p1"), epoch=0, sequence=0, **changes
    )
    partition = {"partition_index": 0, "error_code": 0, "high_watermark": 2, "records": memoryview(batch.encode(book))}
    return {"responses": [{"topic_id": bytes([side + 1]) * 16, "partitions": [partition]}]}


def test_records_are_compared_by_what_they_hold() -> None:
    assert found(fetched(0), fetched(1), FETCH) == []
    (one,) = found(fetched(0), fetched(1, transactional=True), FETCH)
    assert one.path.endswith(".attributes")
    assert found(fetched(0), fetched(1, max_time=9), FETCH)[0].path.endswith(".max_timestamp")
    damaged = found(fetched(0), fetched(1, damage=lambda data: data[:16] + b"\7" + data[17:]), FETCH)
    assert damaged


def test_a_wanted_difference_is_explained_and_its_neighbour_is_not() -> None:
    step = Step(api="create_topics", version=7, values={"topics": [], "timeout": 5_000})
    ours = Difference(f"topics[{TOPIC}].configs[durability]", ABSENT, {"value": "synced"})
    lost = Difference(f"topics[{TOPIC}].configs[durability]", {"value": "synced"}, ABSENT)
    theirs = Difference(f"topics[{TOPIC}].configs[retention.ms]", ABSENT, {"value": "1"})
    assert [one.name for one in (explaining(step, ours),) if one] == ["settings of ours"]
    assert explaining(step, lost) is None and explaining(step, theirs) is None


CONFIGS = Step(api="describe_configs", version=4, values={"resources": []})
OF_SETTINGS = [
    ("results[4:1].configs[log.dirs].value", "/a", "/b", True),
    ("results[4:1].configs[num.partitions].value", "1", "2", False),
    ("results[4:1].configs[num.partitions]", ABSENT, {}, False),
    ("results[4:1].configs[num.partitions]", {}, ABSENT, False),
    ("results[4:1].configs[num.io.threads]", {}, ABSENT, True),
    ("results[4:1].configs[no.such.key]", {}, ABSENT, False),
    ("results[4:1].configs[log.format]", ABSENT, {}, True),
    ("results[4:1].configs[log.dirs].is_sensitive", False, True, False),
    ("results[4:1].configs[num.partitions].synonyms[num.partitions].value", "1", "2", False),
    ("results[2:t].configs[segment.ms].synonyms[log.roll.ms]", ABSENT, {}, True),
    ("results[2:t].configs[segment.bytes].synonyms[log.segment.bytes]", ABSENT, {}, False),
]


@pytest.mark.parametrize(("path", "theirs", "ours", "is_wanted"), OF_SETTINGS)
def test_settings_differ_only_where_they_are_listed(path: str, theirs: Any, ours: Any, is_wanted: bool) -> None:
    assert (explaining(CONFIGS, Difference(path, theirs, ours)) is not None) is is_wanted


def test_of_several_mistakes_only_known_pairs_of_one_field_are_explained() -> None:
    step = Step(api="fetch", version=13, values={"topics": [], "isolation_level": 0, "replica_id": -1})
    partition = "responses[<t>].partitions[0].error_code"
    assert explaining(step, Difference(partition, 1, 74)) is not None
    assert explaining(step, Difference("error_code", 1, 74)) is None
    assert explaining(step, Difference(partition, 106, 71)) is None


def is_explained(step: Step, *every: Difference) -> list[bool]:
    """Each of the differences of one answer."""
    return [explaining(step, one, every) is not None for one in every]


def test_an_unknown_topic_comes_before_what_it_is_sent() -> None:
    step = Step(api="produce", version=13, values={"topic_data": [], "transactional_id": None, "acks": 1})
    path = "responses[<t>].partition_responses[0:-1].error_code"
    for pair in ((2, 100), (53, 100), (87, 48), (87, 49)):
        assert is_explained(step, Difference(path, *pair)) == [True]
    assert is_explained(step, Difference(path, 100, 2)) == is_explained(step, Difference(path, 0, 100)) == [False]


def test_a_reassignment_of_a_topic_says_what_was_asked() -> None:
    for topics, is_wanted in (([], True), (None, True), ([{"name": "t"}], False)):
        step = Step(api="alter_partition_reassignments", version=1, values={"topics": topics, "timeout": 5_000})
        assert is_explained(step, Difference("allow_replication_factor_change", True, False)) == [is_wanted]
        assert is_explained(step, Difference("allow_replication_factor_change", False, True)) == [False]


def test_only_a_static_member_may_wait_for_a_leader_that_kafka_does_not_name() -> None:
    generation = Difference("generation_id", 0, 3)
    for instance, is_wanted in (("i", True), (None, False)):
        step = Step(api="join_group", version=7, values={"group_instance_id": instance})
        assert is_explained(step, generation, Difference("leader", "", "<m1>")) == [is_wanted] * 2
        assert is_explained(step, generation, Difference("leader", "<m2>", "<m1>")) == [False] * 2
        parked = Difference("", {"leader": "", "error_code": 0}, SILENT)
        assert is_explained(step, parked) == [is_wanted]
        assert is_explained(step, Difference("", {"leader": "", "error_code": 25}, SILENT)) == [False]


def asked(topic: str, partition: int, most: int) -> dict[str, Any]:
    return {"name": topic, "partitions": [{"partition": partition, "partition_max_bytes": most}]}


@pytest.mark.parametrize(
    ("topics", "is_wanted"),
    [
        ([asked("a", 1, 0), asked("b", 0, 0)], True),
        ([asked("a", 1, 1_000_000), asked("b", 0, 0)], False),
        ([asked("a", 1, 0)], False),
    ],
    ids=["no room in it", "no room in another one", "no other one"],
)
def test_a_batch_that_is_missing_is_explained_by_the_room_of_its_own_partition(
    topics: list[dict[str, Any]], is_wanted: bool
) -> None:
    step = Step(api="fetch", version=17, values={"topics": topics, "isolation_level": 0, "replica_id": -1})
    batch = {"base_offset": 0, "attributes": 0}
    assert is_explained(step, Difference("responses[<a>].partitions[1].records[0]", ABSENT, batch)) == [is_wanted]


def test_a_batch_behind_a_segments_end_is_explained_where_a_marker_of_today_is_missing_too() -> None:
    step = Step(api="fetch", version=12, values={"topics": [], "isolation_level": 0, "replica_id": -1})
    plain, marker = (
        Difference(f"responses[a].partitions[0].records[{at}]", ABSENT, {"base_offset": at, "attributes": attributes})
        for at, attributes in ((4, 0), (3, 0x30))
    )
    assert is_explained(step, plain, marker) == [True, True] and is_explained(step, plain) == [False]


def test_without_time_only_what_kafka_says_to_have_run_out_of_it_is_explained() -> None:
    other = Difference("topics[a].num_partitions", -1, 1)
    for timeout, code, is_wanted in ((0, 7, True), (5_000, 7, False), (0, 3, False)):
        step = Step(api="create_topics", version=7, values={"topics": [], "timeout": timeout})
        assert is_explained(step, other, Difference("topics[a].error_code", code, 0)) == [is_wanted] * 2
    step = Step(api="alter_partition_reassignments", version=1, values={"topics": [{"name": "a"}], "timeout": 0})
    echo = Difference("allow_replication_factor_change", True, False)
    assert is_explained(step, echo, Difference("error_code", 7, 0)) == [True, True]


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice to one partition"])
def test_a_batch_that_is_refused_for_another_reason_than_zstd_is_found(times: int) -> None:
    """Twice: seed 4202."""
    batch = Batch(rows=((None, b"v"),), times=(5,), codec=Codec.ZSTD)
    data = [{"name": "t", "partition_data": [{"index": 0, "records": batch if times == 1 else [batch] * times}]}]
    step = Step(api="produce", version=6, values={"topic_data": data, "transactional_id": None, "acks": -1})
    path = "responses[t].partition_responses[0].error_code"
    for code, is_wanted in ((76, True), (87, False)):
        found = Difference(path, code, 0)
        assert (explaining(step, found, [found]) is not None) is is_wanted


def test_a_wrong_error_code_is_explained_by_no_row() -> None:
    """But for the calls that `_is_other_order` and `unknown server error` name."""
    step = Step(api="metadata", version=12, values={"topics": []})
    assert explaining(step, Difference("topics[x].error_code", 0, 3)) is None
    assert explaining(step, Difference("topics[x].error_code", 3, 0)) is None


def test_every_row_has_a_name_of_its_own_and_a_reason() -> None:
    names = [row.name for row in WANTED]
    assert len(dict.fromkeys(names)) == len(names)
    assert all(isinstance(row, Wanted) and len(row.reason) > 30 for row in WANTED)


def test_what_a_side_gives_out_is_learned_from_its_answer() -> None:
    book = Book()
    step = Step(api="init_producer_id", version=5, values={}, label="t1")
    learn(step, {"error_code": 0, "producer_id": 77, "producer_epoch": 3}, book)
    assert book.resolve({"id": Ref("producer", "t1"), "epoch": Ref("epoch", "t1", plus=1)}) == {"id": 77, "epoch": 4}
    assert book.resolve(Ref("producer", "t2")) == -1


@pytest.mark.parametrize(
    ("theirs", "ours", "version", "is_wanted"),
    [(SILENT, 106, 13, True), (SILENT, 106, 12, False), (SILENT, 0, 13, False), (CLOSED, 106, 13, False)],
)
def test_a_topic_without_an_id_in_a_session(theirs: str, ours: int, version: int, is_wanted: bool) -> None:
    difference = Difference("", theirs, {"error_code": ours, "session_id": 0, "responses": ()})
    (row,) = [one for one in WANTED if one.name == "a topic without an id in a session"]
    step = Step(api="fetch", version=version, values={"topics": []})
    assert row.explains(step, difference, [difference]) is is_wanted
