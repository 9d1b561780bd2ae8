"""Fixtures for an application's tests. pytest finds them by the entry point `pytest11`.

`quorumlog_cluster` is a cluster of real processes for the whole session. `quorumlog_topic` is a new topic in it,
deleted after the test. The cluster starts with the first test that uses it, one per worker under xdist.

`--quorumlog-tls` protects the cluster. Clients log in over TLS, by what `client_options(FAMILY)` of the cluster says;
it says what clients need without TLS, too, so that a test can pass it always.

`@pytest.mark.quorumlog(nodes=5, faults="partition,pause", seed=7)` gives one test a cluster of its own, whose nodes are
struck while it runs. `quorumlog_cluster.faults.stop()` ends that, as the end of the test does. If the test fails, its
report says the seed and what was done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from quorumlog.testing.cluster import LocalCluster
    from quorumlog.testing.faults import Faults
    from quorumlog.testing.topic import LocalTopic

CLUSTER = "quorumlog_cluster"
MARKER = "quorumlog(nodes=3, faults='', seed=0, tls=False, config={}): a cluster of its own for this test, with faults"
FAULTS: pytest.StashKey[Faults] = pytest.StashKey()
KEPT = pytest.StashKey[Path]()  # the root of the session's cluster, if its data is kept


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("quorumlog")
    group.addoption(
        "--quorumlog-nodes", type=int, default=3, metavar="N", help="nodes of the quorumlog_cluster fixture (3)"
    )
    group.addoption("--quorumlog-tls", action="store_true", help="clients log in over TLS (client_options says how)")
    group.addoption("--quorumlog-keep-data", action="store_true", help="keep the nodes' directories and logs")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@dataclass(frozen=True)
class Own:
    """What the marker says of a test's own cluster. faults: kinds with commas between; empty: none."""

    nodes: int = 3
    faults: str = ""
    seed: int = 0
    tls: bool = False
    config: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.nodes} nodes" + (f" {self.faults} seed {self.seed}" if self.faults else "")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A marked test gets the fixture anew, and for itself alone."""
    marker = metafunc.definition.get_closest_marker("quorumlog")
    if marker is None or CLUSTER not in metafunc.fixturenames:
        return
    try:
        own = Own(*marker.args, **marker.kwargs)
    except TypeError as error:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: {MARKER}: {error}") from None
    metafunc.parametrize(CLUSTER, [own], indirect=True, scope="function", ids=str)


@pytest.fixture(scope="session")
def quorumlog_shared_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    """What `quorumlog_cluster` is to tests without the marker."""
    keep = request.config.getoption("--quorumlog-keep-data")
    root = tmp_path_factory.mktemp("quorumlog") / "cluster"
    if keep:
        request.config.stash[KEPT] = root
    nodes, tls = request.config.getoption("--quorumlog-nodes"), request.config.getoption("--quorumlog-tls")
    with _made(root, Own(nodes=nodes, tls=tls), keep) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def quorumlog_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    """A healthy cluster of real processes. After the last test its nodes are stopped and its data is removed."""
    own: Own | None = getattr(request, "param", None)
    if own is None:
        yield request.getfixturevalue("quorumlog_shared_cluster")
        return
    keep = request.config.getoption("--quorumlog-keep-data")
    tls = own.tls or request.config.getoption("--quorumlog-tls")
    root = tmp_path_factory.mktemp("quorumlog") / "cluster"
    if keep:
        request.config.stash[KEPT] = root
    with _made(root, replace(own, tls=tls), keep) as cluster:
        yield from _struck(cluster, own, request.node)


def _made(root: Path, own: Own, keep: bool) -> LocalCluster:
    from quorumlog.testing.cluster import LocalCluster

    return LocalCluster(root, nodes=own.nodes, config=own.config, keep_data=keep, tls=own.tls)


def _struck(cluster: LocalCluster, own: Own, item: pytest.Item) -> Iterator[LocalCluster]:
    from quorumlog.testing.faults import Faults, parse_kinds

    kinds = parse_kinds(own.faults)
    if not kinds:
        yield cluster
        return
    cluster.faults = item.stash[FAULTS] = Faults(cluster.nodes, kinds, own.seed)
    cluster.faults.start()
    try:
        yield cluster
    finally:
        cluster.faults.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report = yield
    faults = item.stash.get(FAULTS, None)
    if report.failed and faults is not None:
        lines = [f"seed {faults.seed}", *(faults.done or ["none has begun yet"])]
        report.sections.append(("quorumlog faults", "\n".join(lines)))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    root = config.stash.get(KEPT, None)
    if root is not None:
        terminalreporter.write_line(f"quorumlog: data and logs of the nodes are in {root}")


@pytest.fixture
def quorumlog_topic(quorumlog_cluster: LocalCluster) -> Iterator[LocalTopic]:
    """A topic of one partition that no other test writes to."""
    with quorumlog_cluster.topic("test") as topic:
        yield topic
