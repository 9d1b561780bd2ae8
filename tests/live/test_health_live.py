"""grpc.health.v1 and /readyz of a real process agree, while it serves and while it cannot."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from quorumlog.testing.ports import NodePorts, PortPicker
from quorumlog_server.config.config import load
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.secret import new_secret
from quorumlog_server.edge.real_edges import random_uuid
from quorumlog_storage.edge.disk import RealDisk

WAIT_S = 30
SERVICES = ("", "quorumlog.Broker", "quorumlog.Controller")


@pytest.fixture
def ports() -> Iterator[list[NodePorts]]:
    picker = PortPicker()
    yield picker.pick(2)
    picker.close()


@contextmanager
def running(folder: Path, ports: NodePorts, voters: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """The process and its listeners by name; its next line will be READY."""
    config = folder / "server.properties"
    config.write_text(
        f"node.id=1\nlog.dirs={folder}/a\nmetrics.port=0\ncontroller.quorum.voters={voters}\n"
        f"listeners=CLIENT://127.0.0.1:{ports.client},GRPC://127.0.0.1:{ports.grpc},"
        f"INTERNAL://127.0.0.1:{ports.internal}\n"
    )
    format_node(
        load(str(config), config.read_text(), {}),
        cluster_id="c",
        secret=new_secret(bytes(range(32))),
        disk=RealDisk(),
        new_uuid=random_uuid,
        protect=lambda name: Path(name).chmod(0o600),
    )
    command = [sys.executable, "-P", "-m", "quorumlog_server", "-c", str(config)]
    with (folder / "node.log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline().removeprefix("LISTENING"))["listeners"]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def health_at(address: str) -> list[int]:
    with grpc.insecure_channel(address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        return [stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=WAIT_S).status for name in SERVICES]


def ready_at(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}/readyz", timeout=WAIT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_node_that_serves(tmp_path: Path, ports: list[NodePorts]) -> None:
    with running(tmp_path, ports[0], f"1@127.0.0.1:{ports[0].internal}") as (process, listeners):
        assert process.stdout is not None and process.stdout.readline().startswith("READY")
        for name in ("GRPC", "INTERNAL"):
            assert health_at(listeners[name]) == [health_pb2.HealthCheckResponse.SERVING] * 3
        assert ready_at(listeners["metrics"]) == (200, "ready\n")


def test_a_node_whose_quorum_has_no_majority(tmp_path: Path, ports: list[NodePorts]) -> None:
    voters = f"1@127.0.0.1:{ports[0].internal},2@127.0.0.1:{ports[1].internal}"
    with running(tmp_path, ports[0], voters) as (_, listeners):
        assert health_at(listeners["GRPC"]) == [health_pb2.HealthCheckResponse.NOT_SERVING] * 3
        assert ready_at(listeners["metrics"]) == (503, "the leader of the quorum is unknown\n")
