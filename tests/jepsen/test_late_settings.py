"""A broker whose metadata is late gets everything else, and all of it in the end."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from jepsen.sim.network.message import Message, Phase, Verdict
from jepsen.sim.strikes.scripts.late_settings import LateMetadata
from quorumlog.messages.controller import AlterPartitionRequest
from quorumlog.messages.quorum import QuorumFetchRequest
from quorumlog.rpc.calls import BY_REQUEST, OLDER

METADATA, OLDER_METADATA = BY_REQUEST[QuorumFetchRequest].method.path, OLDER[QuorumFetchRequest].method.path
OTHER = BY_REQUEST[AlterPartitionRequest].method.path


class Cluster:
    """released: which of these messages a release has sent on."""

    def __init__(self) -> None:
        self.intercept: Callable[[Message], Verdict] | None = None
        self.network = self
        self.released: list[Callable[[Message], bool]] = []

    def release_held(self, which: Callable[[Message], bool]) -> None:
        self.released.append(which)


def message(destination: str, path: str, phase: Phase) -> Message:
    return Message(source="c1", destination=destination, path=path, phase=phase, ordered=True)


def late(cluster: Any) -> LateMetadata:
    machine: Any = SimpleNamespace(host="b1")
    return LateMetadata(cluster, machine)


@pytest.mark.parametrize(
    ("sent", "verdict"),
    [
        (message("b1", METADATA, Phase.RESPONSE), Verdict.HOLD),
        (message("b1", OLDER_METADATA, Phase.RESPONSE), Verdict.HOLD),
        (message("b1", METADATA, Phase.REQUEST), Verdict.PASS),
        (message("b2", METADATA, Phase.RESPONSE), Verdict.PASS),
        (message("b1", OTHER, Phase.RESPONSE), Verdict.PASS),
    ],
)
def test_what_waits(sent: Message, verdict: Verdict) -> None:
    cluster = Cluster()
    strike = late(cluster)
    assert cluster.intercept is not None and cluster.intercept(sent) is verdict
    strike.end()
    strike.end()
    (which,) = cluster.released
    assert cluster.intercept is None and which(sent) is (verdict is Verdict.HOLD)


def test_one_broker_at_a_time() -> None:
    cluster = Cluster()
    first, second = late(cluster), late(cluster)
    second.end()
    assert cluster.intercept is not None and not cluster.released, "the second one holds nothing"
    first.end()
    assert cluster.intercept is None
