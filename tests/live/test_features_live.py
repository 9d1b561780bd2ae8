"""Feature levels of three real processes: shown, lowered and raised by the command, and known to Kafka's clients."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.main import main
from quorumlog_quorum.metadata.features import LATEST_LEVEL

RANGE = [
    {"name": "group.version", "min_level": 0, "max_level": 1},
    {"name": "joint.version", "min_level": 0, "max_level": 2},
    {"name": "metadata.version", "min_level": 1, "max_level": LATEST_LEVEL},
    {"name": "transaction.version", "min_level": 0, "max_level": 2},
]
BEFORE_CONTROLLERS = 2  # the highest level that has no RegisterControllerRecord (quorumlog_quorum/metadata/features.py)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("features") / "cluster") as cluster:
        yield cluster


def controllers(nodes: LocalCluster) -> int:
    with Cluster(nodes.bootstrap_servers) as client:
        return len(client.admin.describe_features().controllers)


def test_features_are_described_lowered_and_raised(nodes: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str, code: int = 0) -> str:
        assert main(["feature", *arguments, "-b", nodes.bootstrap_servers]) == code
        said = capsys.readouterr()
        return said.out if code == 0 and "-o" in arguments else said.out + said.err

    wait_until(lambda: controllers(nodes) == 3, 20, "all controllers to register")
    found = json.loads(run("describe", "-o", "json"))
    assert found["features"] == [
        {"name": "group.version", "finalized_level": 1, "min_level": 0, "max_level": 1},
        {"name": "joint.version", "finalized_level": 2, "min_level": 0, "max_level": 2},
        {"name": "kraft.version", "finalized_level": 0, "min_level": 0, "max_level": 1},
        {"name": "metadata.version", "finalized_level": LATEST_LEVEL, "min_level": 1, "max_level": LATEST_LEVEL},
        {"name": "transaction.version", "finalized_level": 2, "min_level": 0, "max_level": 2},
    ]
    assert [node["features"] for node in (*found["brokers"], *found["controllers"])] == [RANGE] * 6
    assert "group.version and joint.version and transaction.version would stay on" in run(
        "downgrade", f"metadata.version={BEFORE_CONTROLLERS}", code=6
    )
    assert "joint.version 2 would stay on, and needs 2" in run("downgrade", "transaction.version=1", code=6)
    assert "joint.version falls in two steps: set it to 1 first" in run("downgrade", "joint.version=0", code=6)
    assert "joint.version went from level 2 to 1" in run("downgrade", "joint.version=1")
    for name, level in (("group.version", 1), ("joint.version", 1), ("transaction.version", 2)):
        assert f"{name} went from level {level} to 0" in run("downgrade", f"{name}=0")

    below, latest = f"metadata.version={BEFORE_CONTROLLERS}", f"metadata.version={LATEST_LEVEL}"

    dry = json.loads(run("downgrade", below, "--dry-run", "-o", "json"))
    change = {"name": "metadata.version", "from": LATEST_LEVEL, "to": BEFORE_CONTROLLERS}
    assert dry == {"dry_run": True, "changes": [change]}
    assert f"could go from level {LATEST_LEVEL} to {BEFORE_CONTROLLERS}" in run("downgrade", below, "--dry-run")
    assert "so this is a downgrade" in run("upgrade", below, code=6)
    assert f"went from level {LATEST_LEVEL} to {BEFORE_CONTROLLERS}" in run("downgrade", below)
    found = json.loads(run("describe", "-o", "json"))
    levels = {one["name"]: one["finalized_level"] for one in found["features"]}
    assert levels == {
        "group.version": 0,
        "joint.version": 0,
        "kraft.version": 0,
        "metadata.version": BEFORE_CONTROLLERS,
        "transaction.version": 0,
    }
    assert found["controllers"] == []

    assert "supports metadata.version from level 1 to" in run("upgrade", "metadata.version=99", code=6)
    assert "no feature of that name" in run("upgrade", "wonder=1", code=6)
    assert f"it needs metadata.version 3, and {BEFORE_CONTROLLERS} would be in force" in run(
        "upgrade", "group.version=1", code=6
    )
    raised = run("upgrade", "--latest")
    assert f"metadata.version went from level {BEFORE_CONTROLLERS} to {LATEST_LEVEL}" in raised
    assert "group.version went from level 0 to 1" in raised
    assert "transaction.version went from level 0 to 2" in raised
    assert "joint.version went from level 0 to 2" in raised
    assert f"at level {LATEST_LEVEL} already" in run("upgrade", latest)
    assert controllers(nodes) == 3
    words = [line.split() for line in run("describe").splitlines()]
    assert ["metadata.version", f"{LATEST_LEVEL}", "1", "to", f"{LATEST_LEVEL}"] in words
    assert sum(line[1:3] == ["controller", "metadata.version"] for line in words) == 3


STATUS = """
import sys
from quorumlog_cli.main import main
code = main(["status", "--data", sys.argv[1], "-o", "json"])
print([name for name in ("grpc", "google.protobuf") if name in sys.modules], file=sys.stderr)
sys.exit(code)
"""


def test_status_asks_without_grpc(nodes: LocalCluster) -> None:
    """It takes longer to load than all else that `status` does."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", STATUS, str(nodes.nodes.layout.root)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    found = json.loads(done.stdout)["cluster"]
    assert found["leader"] in (1, 2, 3) and found["high_watermark"] > 0 and found["readers_held_back"] == []
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["upgrade"], "name the levels"),
        (["upgrade", "--latest", "metadata.version=2"], "name the levels"),
        (["downgrade"], "name the levels"),
        (["upgrade", "metadata.version"], "is not NAME=LEVEL"),
        (["upgrade", "metadata.version=new"], "is not NAME=LEVEL"),
        (["downgrade", "f=1", "f=2"], "f is given twice"),
    ],
)
def test_bad_usage_is_refused_before_anything_is_asked(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["feature", *arguments, "-b", "127.0.0.1:1"]) == 2
    assert says in capsys.readouterr().err
