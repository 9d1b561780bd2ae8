"""Levels of features on one whole node: what needs a level keeps it, and a lower level changes what is served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import FeatureUpdate, UpdateFeaturesRequest
from quorumlog.messages.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
)
from quorumlog.rpc.transport import Connection
from tests.rules import rule
from tests.scenarios.asking import errors_in
from tests.scenarios.group_requests import OF_GROUPS, consumer_heartbeat
from tests.scenarios.one_node import CALL_MS, GRPC, OneNode, RealNode, SimNode, make_topic
from tests.scenarios.transaction_client import TransactionClient

GV, TV, JV = "group.version", "transaction.version", "joint.version"


@pytest.fixture(params=["real", "sim"])
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneNode]:
    made: OneNode = RealNode(tmp_path_factory.mktemp("levels")) if request.param == "real" else SimNode()
    yield made
    made.close()
    assert made.crashes == []


class Levels:
    def __init__(self, at: OneNode) -> None:
        self._at = at
        self.connection: Connection = at.connect(GRPC)
        at.do(make_topic(self.connection, "t"))

    def call(self, request: Any) -> Any:
        async def ask() -> Any:
            return await self.connection.call(request, CALL_MS)

        return self._at.do(ask())

    def set(self, name: str, level: int, kind: int) -> tuple[int, str]:
        """kind: 1 to raise, 2 to lower."""
        updates = (FeatureUpdate(name=name, level=level, upgrade_type=kind),)
        response = self.call(UpdateFeaturesRequest(updates=updates, timeout_ms=CALL_MS))
        return response.error_code, response.error_message


@rule("group 5.12")
def test_a_consumer_group_keeps_group_version(at: OneNode) -> None:
    levels = Levels(at)
    joining = consumer_heartbeat(levels.call, "t")
    assert levels.call(joining).error_code == ErrorCode.NONE
    code, said = levels.set(GV, 0, 2)
    assert code == ErrorCode.INVALID_UPDATE_VERSION and repr(joining.group_id) in said
    leaving = joining.__class__(group_id=joining.group_id, member_id="m1", member_epoch=-1)
    assert levels.call(leaving).error_code == ErrorCode.NONE
    assert levels.set(GV, 0, 2)[0] == ErrorCode.INVALID_UPDATE_VERSION, "its records are there"
    assert levels.call(DeleteGroupsRequest(groups=(joining.group_id,))).results[0].error_code == ErrorCode.NONE
    assert levels.set(GV, 0, 2) == (ErrorCode.NONE, "")
    assert levels.call(joining).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert levels.set(GV, 1, 1) == (ErrorCode.NONE, "")
    assert levels.call(joining).error_code == ErrorCode.NONE


def test_a_level_decides_only_whether_there_is_a_consumer_protocol(at: OneNode) -> None:
    """A member or a tool does not see the level change, so nothing else that it is told depends on it."""
    levels = Levels(at)

    def told(kinds: Iterable[type]) -> dict[str, list[ErrorCode]]:
        return {kind.__name__: errors_in(levels.call(OF_GROUPS[kind](levels.call, "t"))) for kind in kinds}

    classic = [kind for kind in OF_GROUPS if kind not in (ConsumerGroupHeartbeatRequest, ConsumerGroupDescribeRequest)]
    nothing_wrong = {kind.__name__: [] for kind in OF_GROUPS}
    assert levels.set(GV, 0, 2) == (ErrorCode.NONE, "")
    assert told(classic) == {kind.__name__: [] for kind in classic}
    assert told([ConsumerGroupHeartbeatRequest]) == {"ConsumerGroupHeartbeatRequest": [ErrorCode.UNSUPPORTED_VERSION]}
    describe = ConsumerGroupDescribeRequest(group_ids=("g",))
    assert errors_in(levels.call(describe)) == [ErrorCode.UNSUPPORTED_VERSION]
    assert levels.set(GV, 1, 1) == (ErrorCode.NONE, "")
    assert told(OF_GROUPS) == nothing_wrong


@rule("kraft 12.17", "group 5.12")
def test_an_open_transaction_keeps_transaction_version(at: OneNode) -> None:
    levels = Levels(at)

    async def opened(version: int) -> TransactionClient:
        made = TransactionClient(levels.connection, "x", version)
        assert await made.begin() == ErrorCode.NONE
        assert await made.send("t", "a") == ErrorCode.NONE
        return made

    client = at.do(opened(2))
    for level in (1, 0):
        assert levels.set(JV, level, 2) == (ErrorCode.NONE, ""), "it needs transaction.version 2"
    for level in (1, 0):
        code, said = levels.set(TV, level, 2)
        assert code == ErrorCode.INVALID_UPDATE_VERSION and "transaction 'x' of a higher level is open" in said
    assert at.do(client.end(committed=True)) == ErrorCode.NONE

    def lowered(level: int) -> bool:
        return levels.set(TV, level, 2) == (ErrorCode.NONE, "")

    assert any(lowered(1) for _ in range(100)), "once its markers are written"
    for level in (1, 0):
        client = at.do(opened(1))
        assert lowered(level), "its transaction is of no higher level"
        assert at.do(client.end(committed=True)) == ErrorCode.NONE
    assert levels.set(TV, 2, 1) == (ErrorCode.NONE, "")
    client = at.do(opened(2))
    assert at.do(client.end(committed=True)) == ErrorCode.NONE
