"""Joint transactions on one whole node, call by call: what is decided is readable as a whole, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import FeatureUpdate, FindCoordinatorRequest, UpdateFeaturesRequest
from quorumlog.messages.joint import (
    AbortJointRequest,
    BeginJointRequest,
    BeginJointResponse,
    CommitJointRequest,
    ForgetJointRequest,
    JointChildRef,
    JointFact,
    ListedJointGroup,
    ListJointRequest,
)
from tests.scenarios.one_node import CALL_MS, OneNode, RealNode, SimNode
from tests.scenarios.transaction_client import TransactionClient
from tests.scenarios.transaction_place import Place

JV, GROUP, PLACE = "joint.version", "spark/q", "file:/checkpoint"
UPGRADE, DOWNGRADE = 1, 2


@pytest.fixture(params=["real", "sim"])
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneNode]:
    made: OneNode = RealNode(tmp_path_factory.mktemp("joint")) if request.param == "real" else SimNode()
    yield made
    made.close()
    assert made.crashes == []


class Writer:
    """A driver and its tasks."""

    def __init__(self, at: OneNode) -> None:
        self._at, self._place = at, Place(at, 2)
        self.connection, self.committed = self._place.connection, self._place.committed
        found = self.call(FindCoordinatorRequest(key_type=1, keys=(GROUP,)), lambda one: one.coordinators[0].error_code)
        assert found.coordinators[0].error_code == ErrorCode.NONE

    def call(self, request: Any, code: Any = lambda one: one.error_code) -> Any:
        return self._at.do(TransactionClient(self.connection, "").until(request, code))

    def begin(self, sequence: int, token: bytes, run: str = "r1", **more: Any) -> BeginJointResponse:
        request = BeginJointRequest(
            group_id=GROUP, location=PLACE, run=run, sequence=sequence, token=token, timeout_ms=60_000, **more
        )
        found: BeginJointResponse = self.call(request)
        return found

    def send(self, child: BeginJointResponse, *values: str) -> int:
        producer = TransactionClient(self.connection, child.transactional_id)
        producer.producer_id, producer.epoch = child.producer_id, child.producer_epoch
        return self._at.do(producer.send(self._place.topic, *values))

    def end(self, child: BeginJointResponse) -> int:
        producer = TransactionClient(self.connection, child.transactional_id)
        producer.producer_id, producer.epoch = child.producer_id, child.producer_epoch
        return self._at.do(producer.end(committed=True))

    def commit(self, sequence: int, children: dict[bytes, BeginJointResponse], rows: int, run: str = "r1") -> Any:
        named = tuple(
            JointChildRef(slot=child.slot, producer_epoch=child.producer_epoch, token=token)
            for token, child in children.items()
        )
        request = CommitJointRequest(
            group_id=GROUP,
            location=PLACE,
            run=run,
            sequence=sequence,
            children=named,
            facts=(JointFact(name="rows", value=rows),),
            commit_wait_ms=10_000,
        )
        return self.call(request)

    def abort(self, sequence: int) -> Any:
        return self.call(AbortJointRequest(group_id=GROUP, location=PLACE, sequence=sequence))

    def listed(self) -> tuple[ListedJointGroup, ...]:
        found = self.call(ListJointRequest())
        assert found.joint_version >= 1
        groups: tuple[ListedJointGroup, ...] = found.groups
        return groups

    def set_level(self, level: int, kind: int) -> tuple[int, str]:
        updates = (FeatureUpdate(name=JV, level=level, upgrade_type=kind),)
        response = self.call(UpdateFeaturesRequest(updates=updates, timeout_ms=CALL_MS))
        return response.error_code, response.error_message


def test_a_batch_is_readable_as_a_whole_once_it_is_decided(at: OneNode) -> None:
    writer = Writer(at)
    first, second, late = (writer.begin(0, token) for token in (b"1", b"2", b"3"))
    assert writer.begin(0, b"1") == first, "a lost answer"
    assert len({one.transactional_id for one in (first, second, late)}) == 3
    for child, value in ((first, "a"), (second, "b"), (late, "not this one")):
        assert writer.send(child, value) == ErrorCode.NONE
    assert writer.end(first) == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "nobody else ends it"
    assert writer.committed() == []
    (group,) = writer.listed()
    assert (group.group_id, group.sequence, len(group.open)) == (GROUP, -1, 3)
    done = writer.commit(0, {b"1": first, b"2": second}, rows=2)
    assert (done.error_code, done.complete) == (ErrorCode.NONE, True)
    assert sorted(writer.committed()) == ["a", "b"]
    assert writer.commit(0, {}, rows=2).error_code == ErrorCode.NONE, "a lost answer"
    assert writer.commit(0, {}, rows=3).error_code == ErrorCode.REPLAY_DIFFERS
    assert writer.begin(0, b"4").decided and writer.abort(0).decided
    (group,) = writer.listed()
    assert (group.sequence, group.open, group.facts[0].value) == (0, (), 2)
    assert writer.send(late, "too late") != ErrorCode.NONE


def test_what_is_aborted_is_never_read_and_its_slot_is_used_again(at: OneNode) -> None:
    writer = Writer(at)
    child = writer.begin(0, b"1")
    assert writer.send(child, "gone") == ErrorCode.NONE
    assert writer.abort(0).aborted == 1
    again = writer.begin(0, b"2")
    assert writer.send(again, "kept") == ErrorCode.NONE
    assert writer.commit(0, {b"1": child}, rows=1).error_code == ErrorCode.CHILD_NOT_OPEN
    assert writer.commit(0, {b"2": again}, rows=1).complete
    assert writer.committed() == ["kept"]
    assert writer.call(ForgetJointRequest(group_id=GROUP)).error_code == ErrorCode.NONE
    assert writer.call(ForgetJointRequest(group_id=GROUP)).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_cluster_leaves_joint_transactions_in_two_steps_and_tears_none(at: OneNode) -> None:
    writer = Writer(at)
    child = writer.begin(0, b"1")
    assert writer.send(child, "a") == ErrorCode.NONE
    code, said = writer.set_level(0, DOWNGRADE)
    assert code == ErrorCode.INVALID_UPDATE_VERSION and "falls in two steps: set it to 1 first" in said
    assert writer.set_level(1, DOWNGRADE) == (ErrorCode.NONE, "")
    refused = writer.begin(0, b"2")
    assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION and "joint.version is 1" in refused.error_message
    assert writer.begin(0, b"1") == child, "what is open goes on"
    code, said = writer.set_level(0, DOWNGRADE)
    assert code == ErrorCode.INVALID_UPDATE_VERSION and f"group '{GROUP}' of joint transactions is open" in said
    assert writer.commit(0, {b"1": child}, rows=1).complete
    assert writer.set_level(0, DOWNGRADE) == (ErrorCode.NONE, "")
    assert writer.commit(1, {}, rows=0).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert writer.committed() == ["a"]
    assert writer.set_level(2, UPGRADE) == (ErrorCode.NONE, "")
    assert writer.begin(0, b"3").decided, "its decision is kept"
