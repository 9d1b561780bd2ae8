"""The admin client and log directories: a broker that cannot say now what lies in its own."""

from __future__ import annotations

import random
from typing import Any

import pytest
import virtual_time
from fake_cluster import FakeCluster, TestClock

from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import DescribeLogDirsRequest, DescribeLogDirsResponse, LogDirDescription


class Directories(FakeCluster):
    """Broker 2 answers with `error`."""

    error = ErrorCode.LEADER_NOT_AVAILABLE

    async def _DescribeLogDirsRequest(self, node: int, _request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        if node == 2:
            return DescribeLogDirsResponse(error_code=self.error, error_message="still reading the metadata log")
        return DescribeLogDirsResponse(directories=(LogDirDescription(path=f"/{node}"),))


def describe(cluster: FakeCluster, **how: Any) -> Any:
    async def ask() -> Any:
        admin = AsyncAdmin(
            cluster,  # type: ignore[arg-type]
            clock=TestClock(),
            rng=random.Random(1),
            bootstrap_servers="b1",
        )
        try:
            return await admin.describe_log_dirs(**how)
        finally:
            await admin.close()

    return virtual_time.run(ask())


def test_a_broker_that_has_no_metadata_yet_is_left_out_and_named() -> None:
    silent: dict[int, str] = {}
    assert sorted(describe(Directories(), silent=silent)) == [1, 3]
    assert list(silent) == [2] and "still reading the metadata log" in silent[2]
    with pytest.raises(RequestFailed):
        describe(Directories())


def test_other_errors_are_not_left_out() -> None:
    cluster = Directories()
    cluster.error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with pytest.raises(RequestFailed):
        describe(cluster, silent={})
