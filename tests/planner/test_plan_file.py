"""The JSON of kafka-reassign-partitions, read and written, and what is refused before it is applied."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planner_clusters import broker, partition

from quorumlog.planner.cluster import ANYWHERE, Assignment, Broker, Cluster, Directory, Partition, TopicPartition
from quorumlog.planner.faults import faults, told
from quorumlog.planner.plan_file import BadPlanFile, as_document, read_plan, write_plan

REPLICA = st.tuples(st.integers(0, 2**31 - 1), st.sampled_from([ANYWHERE, "/data/a", "/data/ü b"]))
PLANS = st.dictionaries(
    st.tuples(st.text(min_size=1, max_size=5), st.integers(0, 9)),
    st.lists(REPLICA, min_size=1, max_size=4, unique_by=lambda pair: pair[0]).map(
        lambda pairs: Assignment(tuple(node for node, _ in pairs), tuple(path for _, path in pairs))
    ),
)


@given(PLANS)
def test_what_is_written_is_read(wanted: dict[TopicPartition, Assignment]) -> None:
    assert read_plan(write_plan(wanted)) == wanted
    assert json.loads(write_plan(wanted)) == as_document(wanted)


def test_the_form_is_that_of_kafkas_tool() -> None:
    text = '{"version":1,"partitions":[{"topic":"foo","partition":1,"replicas":[3,5],"log_dirs":["any","/d"]}]}'
    wanted = {("foo", 1): Assignment((3, 5), (ANYWHERE, "/d"))}
    assert read_plan(text) == wanted
    assert write_plan(wanted).replace("\n", "") == text
    without = '{"partitions":[{"topic":"foo","partition":1,"replicas":[3,5],"observers":[]}],"more":1}'
    assert read_plan(without) == {("foo", 1): Assignment.of((3, 5))}


ENTRY = '{"version":1,"partitions":[%s]}'
BAD = [
    ("no JSON", "{", "not JSON"),
    ("deep", "[" * 100_000, "not JSON"),
    ("a list", "[]", "of the form"),
    ("no partitions", '{"version":1}', "of the form"),
    ("a later version", '{"version":2,"partitions":[]}', "version 2"),
    ("no topic", ENTRY % '{"partition":1,"replicas":[1]}', "entry 1 names no topic"),
    ("no number", ENTRY % '{"topic":"t","partition":"1","replicas":[1]}', "is no partition"),
    ("true", ENTRY % '{"topic":"t","partition":true,"replicas":[1]}', "is no partition"),
    ("no replicas", ENTRY % '{"topic":"t","partition":1,"replicas":[]}', "no list of broker ids"),
    ("negative", ENTRY % '{"topic":"t","partition":1,"replicas":[-1]}', "no list of broker ids"),
    ("twice", ENTRY % '{"topic":"t","partition":1,"replicas":[1,1]}', "name a broker twice"),
    ("short log_dirs", ENTRY % '{"topic":"t","partition":1,"replicas":[1,2],"log_dirs":["any"]}', "log_dirs"),
    ("relative path", ENTRY % '{"topic":"t","partition":1,"replicas":[1],"log_dirs":["a"]}', "log_dirs"),
    ("the same", ENTRY % ",".join(['{"topic":"t","partition":1,"replicas":[1]}'] * 2), "entry 2: t-1 is named twice"),
]


@pytest.mark.parametrize(("text", "says"), [one[1:] for one in BAD], ids=[one[0] for one in BAD])
def test_a_file_that_is_no_plan_says_where(text: str, says: str) -> None:
    with pytest.raises(BadPlanFile, match=says):
        read_plan(text)


OFFLINE = Directory(path="/off", is_online=False, takes_new=False)
CLUSTER = Cluster.of(
    [
        broker(1),
        broker(2),
        broker(3, is_live=False),
        Broker(node_id=4, directories=(Directory(path="/4"), OFFLINE, Directory(path="/full", takes_new=False))),
        broker(5, cordoned=True),
    ],
    [partition(0, (1, 2)), Partition(topic="u", index=0, replicas=(1, 2, 3), min_isr=2)],
)
FAULTS = [
    ("good", "t", 0, (2, 4), (ANYWHERE, "/4"), ""),
    ("another factor", "t", 0, (1, 2, 4), None, ""),
    ("a fenced one that it has", "u", 0, (1, 4, 3), None, ""),
    ("no partition", "t", 1, (1,), None, "no partition t-1"),
    ("no broker", "t", 0, (1, 9), None, "not registered"),
    ("a fenced one", "t", 0, (1, 3), None, "fenced"),
    ("twice", "t", 0, (1, 1), None, "twice"),
    ("nothing", "t", 0, (), None, "no replica"),
    ("no directory", "t", 0, (1, 4), (ANYWHERE, "/x"), "no log directory"),
    ("an offline one", "t", 0, (1, 4), (ANYWHERE, "/off"), "offline"),
    ("a cordoned one", "t", 0, (1, 4), (ANYWHERE, "/full"), "which is cordoned"),
    ("a cordoned broker", "t", 0, (1, 5), None, "only log directories that are cordoned"),
    ("below min ISR", "u", 0, (1, 3), None, "min.insync.replicas"),
]


@pytest.mark.parametrize(
    ("topic", "index", "replicas", "paths", "says"), [one[1:] for one in FAULTS], ids=[one[0] for one in FAULTS]
)
def test_faults(topic: str, index: int, replicas: tuple[int, ...], paths: tuple[str, ...] | None, says: str) -> None:
    found = faults(CLUSTER, {(topic, index): Assignment(replicas, paths or (ANYWHERE,) * len(replicas))})
    assert len(found) == (1 if says else 0)
    assert says in "".join(found)


def test_a_message_names_the_first_faults_and_counts_the_rest() -> None:
    assert told([f"f{n}" for n in range(12)]).endswith("f9; and 2 more")
