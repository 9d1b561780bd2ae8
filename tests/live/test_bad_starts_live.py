"""Bad commands and bad starts beside a running cluster: an exit code and a sentence, and nothing has changed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from quorumlog.testing import LocalCluster
from quorumlog.testing.layout import NodeFiles
from quorumlog.testing.ports import NodePorts, PortPicker
from quorumlog_server.config.config import load
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.secret import new_secret
from quorumlog_server.edge.real_edges import random_uuid
from quorumlog_storage.edge.disk import RealDisk

WAIT_S = 60
NODE_ID = 7


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("bad-starts") / "cluster", nodes=1) as cluster:
        yield cluster


def run(*command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", *command], input=stdin, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


# --- commands ---

LONG = "x" * 250
COMMANDS: list[tuple[str, list[str], int, str]] = [
    ("name: ..", ["topic", "create", ".."], 2, "reserved for directories"),
    ("name: a/b", ["topic", "create", "a/b"], 2, "only ASCII letters"),
    ("name: 250 characters", ["topic", "create", LONG], 2, "250 characters, limit 249"),
    ("name: a line break", ["topic", "create", "a\nb"], 2, "only ASCII letters"),
    ("config: a typo", ["topic", "create", "t", "-c", "retention.mss=1"], 2, "did you mean retention.ms?"),
    ("config: no value", ["topic", "create", "t", "-c", "retention.ms"], 2, "not KEY=VALUE"),
    ("replicas: three of one", ["topic", "create", "t", "--replication-factor", "3"], 6, "INVALID_REPLICATION_FACTOR"),
    ("client option: a typo", ["topic", "list", "-X", "client.idd=x"], 2, "did you mean"),
    ("describe: unknown", ["topic", "describe", "nope"], 7, "UNKNOWN_TOPIC_OR_PARTITION"),
    ("delete: unknown", ["topic", "delete", "nope"], 7, "UNKNOWN_TOPIC_OR_PARTITION"),
    ("produce: an illegal name", ["produce", "a/b"], 2, "INVALID_TOPIC_EXCEPTION"),
]


@pytest.mark.parametrize(("command", "code", "says"), [row[1:] for row in COMMANDS], ids=[row[0] for row in COMMANDS])
def test_a_bad_command(cluster: LocalCluster, command: list[str], code: int, says: str) -> None:
    done = run("quorumlog_cli.main", *command, "-b", cluster.bootstrap_servers, stdin="a line\n")
    assert (done.returncode, says in done.stderr) == (code, True), done.stderr
    assert done.stdout == ""
    assert cluster.client.admin.list_topics() == []


# --- starts ---


@dataclass
class Yard:
    """Where a node is about to be started, beside `other`, which runs."""

    root: Path
    ports: NodePorts
    other: NodeFiles

    def config(self, **changes: str) -> Path:
        values = {
            "node.id": str(NODE_ID),
            "log.dirs": f"{self.root}/a",
            "metrics.port": str(self.ports.admin),
            "listeners": f"CLIENT://127.0.0.1:{self.ports.client},INTERNAL://127.0.0.1:{self.ports.internal}",
            "controller.quorum.voters": f"{changes.get('node_id', NODE_ID)}@127.0.0.1:{self.ports.internal}",
            **{key.replace("_", "."): value for key, value in changes.items()},
        }
        path = self.root / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return path

    def format(self, *, cluster_id: str = "c", **changes: str) -> Path:
        path = self.config(**changes)
        secret = new_secret(bytes(range(32)))
        format_node(
            load(str(path), path.read_text(), {}),
            cluster_id=cluster_id,
            secret=secret,
            disk=RealDisk(),
            new_uuid=random_uuid,
            protect=lambda name: Path(name).chmod(0o600),
        )
        return path

    def files(self) -> dict[str, bytes]:
        """The directories of the node that is to be started; a lock file says nothing."""
        names = [path for path in sorted(self.root.rglob("*")) if path.is_file() and path.name != ".lock"]
        return {str(path): path.read_bytes() for path in names}


def same_directory(yard: Yard) -> Path:
    return yard.config(node_id=str(yard.other.node_id), log_dirs=str(yard.other.data))


def of_another_cluster(yard: Yard) -> Path:
    yard.format(cluster_id="foreign", log_dirs=f"{yard.root}/b")
    yard.format(cluster_id="own")
    return yard.config(log_dirs=f"{yard.root}/a,{yard.root}/b")


def of_another_node(yard: Yard) -> Path:
    yard.format()
    return yard.config(node_id="8")


def a_copy(yard: Yard) -> Path:
    yard.format()
    (yard.root / "b").mkdir()
    (yard.root / "b" / "meta.properties").write_bytes((yard.root / "a" / "meta.properties").read_bytes())
    return yard.config(log_dirs=f"{yard.root}/a,{yard.root}/b")


def not_formatted(yard: Yard) -> Path:
    return yard.config()


def client_port(yard: Yard) -> Path:
    yard.format()
    taken = f"CLIENT://127.0.0.1:{yard.other.ports.client},INTERNAL://127.0.0.1:{yard.ports.internal}"
    return yard.config(listeners=taken)


def internal_port(yard: Yard) -> Path:
    yard.format()
    port = yard.other.ports.internal
    return yard.config(
        listeners=f"CLIENT://127.0.0.1:{yard.ports.client},INTERNAL://127.0.0.1:{port}",
        controller_quorum_voters=f"{NODE_ID}@127.0.0.1:{port}",
    )


def metrics_port(yard: Yard) -> Path:
    yard.format()
    return yard.config(metrics_port=str(yard.other.ports.admin))


def key_with_a_typo(yard: Yard) -> Path:
    yard.format()
    return yard.config(log_retention_mss="1")


STARTS: list[tuple[Callable[[Yard], Path], int, list[str], bool]] = [
    (same_directory, 6, [".lock is locked by another process"], True),
    (of_another_cluster, 6, ["belongs to cluster foreign, not own", "/b"], True),
    (of_another_node, 6, ["belongs to node 7, this is node 8"], True),
    (a_copy, 6, ["one directory id", "remove the copy"], True),
    (not_formatted, 6, ["no meta.properties", "quorumlog"], True),
    (key_with_a_typo, 2, ["log.retention.mss", "did you mean log.retention.ms?"], True),
    (metrics_port, 6, ["for metrics: the port is in use"], True),
    (client_port, 6, ["for CLIENT: the port is in use"], False),  # found after the metadata log was made
    (internal_port, 6, ["for INTERNAL: the port is in use"], False),
]


@pytest.mark.parametrize(
    ("prepare", "code", "says", "untouched"), STARTS, ids=[case[0].__name__.replace("_", " ") for case in STARTS]
)
def test_a_bad_start(
    cluster: LocalCluster, tmp_path: Path, prepare: Callable[[Yard], Path], code: int, says: list[str], untouched: bool
) -> None:
    picker = PortPicker()
    try:
        (ports,) = picker.pick(1)
        yard = Yard(tmp_path, ports, cluster.nodes.layout.node(1))
        config = prepare(yard)
        before = yard.files()
        done = run("quorumlog_server", "-c", str(config))
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert [text for text in says if text not in done.stderr] == [], done.stderr
        assert not untouched or yard.files() == before
        assert cluster.nodes.readiness(1).ready
    finally:
        picker.close()
