"""Who changed what, on one whole node by both wires: the metadata log names the client, and no node in its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.messages.admin import FeatureUpdate, UpdateFeaturesRequest
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest
from quorumlog_cli.offline.metadata_log import find_metadata_log, read_log
from quorumlog_quorum.metadata.features import CHANGED_BY_LEVEL, LATEST_LEVEL, METADATA_VERSION
from tests.scenarios.asking import errors_in
from tests.scenarios.one_node import CALL_MS, GRPC, LANE, RealNode

UPGRADE, DOWNGRADE = 1, 2


@pytest.fixture
def at(tmp_path: Path) -> Iterator[RealNode]:
    node = RealNode(tmp_path)
    yield node
    node.close()
    assert not node.crashes


def ask(at: RealNode, wire: str, request: Any) -> None:
    async def call() -> Any:
        connection = at.connect(wire)
        try:
            return await connection.call(request, CALL_MS)
        finally:
            await connection.close()

    answer = at.do(call())
    assert not errors_in(answer), answer


def create(at: RealNode, wire: str, name: str) -> None:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    ask(at, wire, CreateTopicsRequest(topics=(topic,), timeout_ms=CALL_MS))


def to_level(at: RealNode, level: int, kind: int) -> None:
    update = FeatureUpdate(name=METADATA_VERSION, level=level, upgrade_type=kind)
    ask(at, GRPC, UpdateFeaturesRequest(updates=(update,), timeout_ms=CALL_MS))


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_a_change_names_its_client_at_its_level_only(at: RealNode, tmp_path: Path, wire: str) -> None:
    create(at, wire, "one")
    to_level(at, CHANGED_BY_LEVEL - 1, DOWNGRADE)
    create(at, wire, "two")
    to_level(at, LATEST_LEVEL, UPGRADE)
    create(at, wire, "three")
    at.do(at.node.stop())
    found = [one.meaning for one in read_log(find_metadata_log(tmp_path / "a"))]
    told = [(one["type"], one.get("name", one.get("principal"))) for one in found]
    begins = [told.index(("TopicRecord", name)) for name in ("one", "two", "three")]
    by_client = ("ChangedByRecord", "User:ANONYMOUS")
    assert [told[place + 2] == by_client for place in begins] == [True, False, True]
    signed = {(one["principal"], one["host"], one["client_id"]) for one in found if one["type"] == "ChangedByRecord"}
    assert signed == {("User:ANONYMOUS", "127.0.0.1", "tester"), ("Node:1", "127.0.0.1", "broker-1")}
    raised = told.index(("FeatureLevelRecord", METADATA_VERSION), begins[1])
    assert told[raised + 1] == ("ChangedByRecord", "Node:1"), "below the level a broker says for whom only under rules"
