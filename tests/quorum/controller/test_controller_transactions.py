"""The controller writes a change that is larger than a batch as a metadata transaction (KIP-866)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from service_world import CONTROLLER, SESSION_MS, Bench, refusal, topics

from jepsen.sim.time import killed_coroutines
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest
from quorumlog.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ChangedByRecord,
    EndTransactionRecord,
    MetadataRecord,
    PartitionRecord,
    TopicRecord,
)
from quorumlog.records import decode_batch, headers
from quorumlog.settings.controller import ControllerConfig
from quorumlog_quorum.controller.engine.limits import MAX_TRANSACTION_BYTES
from quorumlog_quorum.controller.engine.transaction import in_batches
from quorumlog_quorum.metadata.features import LATEST_LEVEL, TRANSACTION_LEVEL
from quorumlog_quorum.metadata.frame import decode_record
from tests.rules import rule

PARTITIONS = 8


def wide(name: str, partitions: int = PARTITIONS) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=(topic,), timeout_ms=60_000)


def written(bench: Bench, start: int = 0) -> list[list[MetadataRecord]]:
    """The records of each batch from offset `start` on; of a control batch, none."""
    found = []
    for batch, _ in bench.driver.batches:
        header = headers(batch)[0]
        if header.base_offset >= start and not header.is_control:
            found.append([decode_record(record.value or b"") for record in decode_batch(batch, header)])
    return found


@pytest.fixture
def leader() -> Iterator[Bench]:
    """The active controller of one broker. Three records fill a batch."""
    bench = Bench(max_batch_records=3)
    bench.transport.answer = bench.alive
    bench.do(lambda: bench.driver.lead(1))
    bench.start_broker(1)
    yield bench
    bench.loop.kill()
    killed_coroutines.empty()


def test_a_change_that_is_larger_than_a_batch_is_a_transaction(leader: Bench) -> None:
    start = leader.driver.end_offset
    assert leader.run(leader.ask(wide("t"))).topics[0].error_code == ErrorCode.NONE
    batches = written(leader, start)
    assert [len(batch) for batch in batches] == [3, 3, 3, 3]
    assert isinstance(batches[0][0], BeginTransactionRecord) and isinstance(batches[-1][-1], EndTransactionRecord)
    assert isinstance(batches[-1][-2], ChangedByRecord), "who asked is inside it"
    assert batches[0][0].name == "CreateTopicsRequest"
    assert leader.service.tip == leader.loader.image and len(leader.loader.image.topic_ids) == 1


def test_what_fits_into_a_batch_is_one(leader: Bench) -> None:
    start = leader.driver.end_offset
    leader.run(leader.ask(topics("t")))
    kinds = [[type(record) for record in batch] for batch in written(leader, start)]
    assert kinds == [[TopicRecord, PartitionRecord, ChangedByRecord]]


def test_everything_else_waits_until_it_is_whole(leader: Bench) -> None:
    leader.driver.auto_commit = False
    start = leader.driver.end_offset
    creating = leader.start(leader.ask(wide("t")))
    other = leader.start(leader.ask(topics("u")))
    assert "t" not in leader.service.tip.topic_ids, "the tip moves when the transaction is whole"
    while not other.done():
        for topic in leader.loader.image.sorted_topics():
            assert len(topic.partitions) == (PARTITIONS if topic.name == "t" else 1), "a part of a transaction shows"
        leader.do(leader.driver.commit)
        leader.wait(1)
    assert creating.result().topics[0].error_code == other.result().topics[0].error_code == ErrorCode.NONE
    kinds = [type(record) for batch in written(leader, start) for record in batch]
    assert kinds.index(EndTransactionRecord) < len(kinds) - 3 and kinds[-3:] == [
        TopicRecord,
        PartitionRecord,
        ChangedByRecord,
    ]


def test_a_heartbeat_that_waits_keeps_its_session(leader: Bench) -> None:
    leader.driver.auto_commit = False
    leader.start(leader.ask(wide("t")))
    for _ in range(4):
        leader.wait(SESSION_MS // 2)
        leader.start(leader.ask(leader.heartbeat(1)))
    leader.driver.auto_commit = True
    leader.do(leader.driver.commit)
    leader.wait(100)
    assert "t" in leader.loader.image.topic_ids and not leader.is_fenced(1)


@rule("kraft 11.21")
@pytest.mark.parametrize("committed", range(1, 4))
def test_a_controller_that_dies_inside_leaves_nothing(leader: Bench, committed: int) -> None:
    """committed: batches of the transaction that are in the log when leadership is lost."""
    leader.driver.auto_commit = False
    creating = leader.start(leader.ask(wide("t")))
    for _ in range(committed - 1):
        leader.do(leader.driver.commit)
        leader.wait(1)
    leader.do(lambda: (leader.driver.commit(), leader.driver.lose()))
    assert refusal(leader, creating).code is ErrorCode.NOT_CONTROLLER, "it may be asked for again: it never happened"
    assert leader.loader.in_transaction and not leader.loader.image.topics
    start = leader.driver.end_offset
    leader.do(lambda: leader.driver.lead(3))
    leader.driver.auto_commit = True
    leader.do(leader.driver.commit)
    leader.wait(1)
    assert [type(record) for batch in written(leader, start)[:1] for record in batch] == [AbortTransactionRecord]
    assert not leader.loader.image.topics and not leader.loader.in_transaction
    assert leader.run(leader.ask(wide("t"))).topics[0].error_code == ErrorCode.NONE
    assert leader.service.tip == leader.loader.image


@rule("kraft 11.21")
def test_a_claim_that_comes_too_late_leaves_the_abort_to_the_next_controller(leader: Bench) -> None:
    """The abort finds it out, and the activation behind it is not begun (seed 7 of the profile `quorum`, 60 s)."""
    leader.driver.auto_commit = False
    leader.start(leader.ask(wide("t")))
    leader.do(lambda: (leader.driver.commit(), leader.driver.lose()))
    assert leader.loader.in_transaction
    leader.do(lambda: leader.driver.lead_no_more(3))
    assert not leader.service.active and leader.loader.in_transaction
    leader.do(lambda: leader.driver.lead(4))
    leader.driver.auto_commit = True
    leader.do(leader.driver.commit)
    leader.wait(1)
    assert leader.service.active and not leader.loader.in_transaction and not leader.loader.image.topics


def test_after_its_last_batch_the_outcome_is_unknown(leader: Bench) -> None:
    leader.driver.auto_commit = False
    creating = leader.start(leader.ask(wide("t")))
    for _ in range(3):
        leader.do(leader.driver.commit)
        leader.wait(1)
    leader.do(leader.driver.lose)
    assert refusal(leader, creating).code is ErrorCode.REQUEST_TIMED_OUT


def test_a_hand_over_inside_leaves_it_to_the_next_controller(leader: Bench) -> None:
    leader.driver.auto_commit = False
    creating = leader.start(leader.ask(wide("t")))
    leader.do(lambda: leader.service.on_hand_over(1))
    assert refusal(leader, creating).code is ErrorCode.NOT_CONTROLLER
    leader.do(leader.driver.commit)
    leader.do(lambda: leader.loader.on_leader_change(2, 2, CONTROLLER))
    assert leader.loader.in_transaction and not leader.loader.image.topics


def test_control_records_of_the_quorum_may_stand_inside(leader: Bench) -> None:
    leader.driver.auto_commit = False
    creating = leader.start(leader.ask(wide("t")))
    leader.do(lambda: leader.driver.append_control(2))
    leader.driver.auto_commit = True
    leader.do(leader.driver.commit)
    assert leader.run(creating).topics[0].error_code == ErrorCode.NONE
    leader.run(leader.ask(topics("u")))
    assert leader.service.tip == leader.loader.image


def values(count: int, size: int = 10) -> list[bytes]:
    return [bytes(size)] * count


def test_batches_keep_to_both_limits() -> None:
    config = ControllerConfig(max_batch_records=4, max_batch_bytes=100)
    assert [len(one) for one in in_batches("n", values(4), LATEST_LEVEL, config)] == [4]
    assert [len(one) for one in in_batches("n", values(7), LATEST_LEVEL, config)] == [4, 4, 1]
    for one in in_batches("n", values(7, 45), LATEST_LEVEL, config):
        assert sum(len(value) for value in one) <= 100


def test_a_lower_level_has_one_batch() -> None:
    config = ControllerConfig(max_batch_records=3)
    assert len(in_batches("n", values(9), TRANSACTION_LEVEL - 1, config)) == 1


def test_what_is_too_large_is_refused_as_a_whole() -> None:
    with pytest.raises(ApiError, match=str(MAX_TRANSACTION_BYTES)) as raised:
        in_batches("n", values(65, 1 << 20), LATEST_LEVEL, ControllerConfig())
    assert raised.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
