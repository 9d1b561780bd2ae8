"""Fixtures for an application's tests. pytest finds them by the entry point `pytest11`.

`quorumlog_cluster` is a cluster of real processes for the whole session. `quorumlog_topic` is a new topic in it,
deleted after the test. The cluster starts with the first test that uses it, one per worker under xdist.

`--quorumlog-tls` protects the cluster. Clients log in over TLS, by what `client_options(FAMILY)` of the cluster says;
it says what clients need without TLS, too, so that a test can pass it always.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from quorumlog.testing.cluster import LocalCluster
    from quorumlog.testing.topic import LocalTopic

KEPT = pytest.StashKey[Path]()  # the root of the session's cluster, if its data is kept


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("quorumlog")
    group.addoption(
        "--quorumlog-nodes", type=int, default=3, metavar="N", help="nodes of the quorumlog_cluster fixture (3)"
    )
    group.addoption("--quorumlog-tls", action="store_true", help="clients log in over TLS (client_options says how)")
    group.addoption("--quorumlog-keep-data", action="store_true", help="keep the nodes' directories and logs")


@pytest.fixture(scope="session")
def quorumlog_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    """A healthy cluster of real processes. After the last test its nodes are stopped and its data is removed."""
    from quorumlog.testing.cluster import LocalCluster

    keep = request.config.getoption("--quorumlog-keep-data")
    root = tmp_path_factory.mktemp("quorumlog") / "cluster"
    if keep:
        request.config.stash[KEPT] = root
    nodes, tls = request.config.getoption("--quorumlog-nodes"), request.config.getoption("--quorumlog-tls")
    with LocalCluster(root, nodes=nodes, keep_data=keep, tls=tls) as cluster:
        yield cluster


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    root = config.stash.get(KEPT, None)
    if root is not None:
        terminalreporter.write_line(f"quorumlog: data and logs of the nodes are in {root}")


@pytest.fixture
def quorumlog_topic(quorumlog_cluster: LocalCluster) -> Iterator[LocalTopic]:
    """A topic of one partition that no other test writes to."""
    with quorumlog_cluster.topic("test") as topic:
        yield topic
