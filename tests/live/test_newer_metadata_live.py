"""A node whose metadata log was written by newer software: it stops with a sentence, and its data stays whole.

An older log, which names no feature level, is opened as it is.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.messages.metadata_records import ConfigRecord, FeatureLevelRecord
from quorumlog.records import Record, encode_batch
from quorumlog.records.control import LeaderChange, control_batch
from quorumlog.testing.ports import NodePorts, PortPicker
from quorumlog_cli.offline.metadata_log import read_image
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_quorum.raft.quorum_state import QUORUM_STATE_NAME, QuorumState, write_quorum_state
from quorumlog_storage.edge.disk import RealDisk
from tests.live.one_process import format_alone

WAIT_S = 60
NODE_ID = 7
MIN_ISR = encode_record(ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"), level=1)


@pytest.fixture
def ports() -> Iterator[NodePorts]:
    picker = PortPicker()
    (row,) = picker.pick(1)
    yield row
    picker.close()


def formatted(root: Path, ports: NodePorts) -> Path:
    """The configuration file of a node of both roles, alone in its cluster."""
    path = root / "server.properties"
    path.write_text(
        f"node.id={NODE_ID}\nlog.dirs={root}/a\nmetrics.port={ports.admin}\n"
        f"listeners=CLIENT://127.0.0.1:{ports.client},INTERNAL://127.0.0.1:{ports.internal}\n"
        f"controller.quorum.voters={NODE_ID}@127.0.0.1:{ports.internal}\n"
    )
    format_alone(path)
    return path


def write_log(root: Path, *values: bytes) -> Path:
    directory = root / "a" / "__cluster_metadata-0"
    directory.mkdir()
    change = LeaderChange(leader_id=NODE_ID, voters=(NODE_ID,), granting_voters=(NODE_ID,))
    content = control_batch([change], base_offset=0, timestamp_ms=0, leader_epoch=1)
    records = [Record(1 + index, 0, None, value) for index, value in enumerate(values)]
    content += encode_batch(records, base_offset=1, leader_epoch=1)
    (directory / f"{0:020d}.log").write_bytes(content)
    write_quorum_state(RealDisk(), f"{directory}/{QUORUM_STATE_NAME}", QuorumState(epoch=1, leader_id=NODE_ID))
    return directory


NEWER = [
    (
        "a level",
        encode_record(FeatureLevelRecord(name="metadata.version", level=LATEST_LEVEL + 1), level=1),
        f"metadata.version at level {LATEST_LEVEL + 1} at offset 2; "
        f"this software supports metadata.version from level 1 to {LATEST_LEVEL}",
    ),
    ("a record", b"\x00\x63\x00", "a record of type 99 at offset 2"),
    (
        "a version",
        b"\x00\x00\x63",
        "RegisterBrokerRecord version 99 at offset 2; this software supports its versions 0",
    ),
]


@pytest.mark.parametrize(("newer", "says"), [case[1:] for case in NEWER], ids=[case[0] for case in NEWER])
def test_a_node_that_meets_newer_metadata_stops_and_says_what_to_do(
    newer: bytes, says: str, tmp_path: Path, ports: NodePorts
) -> None:
    config = formatted(tmp_path, ports)
    directory = write_log(tmp_path, MIN_ISR, newer)
    before = (directory / f"{0:020d}.log").read_bytes()
    command = [sys.executable, "-P", "-m", "quorumlog_server", "-c", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 6, done.stderr
    assert says in done.stderr and "Upgrade this node" in done.stderr
    assert "Traceback" not in done.stderr and "READY" not in done.stdout
    assert (directory / f"{0:020d}.log").read_bytes().startswith(before), "nothing of the log is lost"


def test_a_log_without_levels_is_opened_and_stays_at_level_1(tmp_path: Path, ports: NodePorts) -> None:
    config = formatted(tmp_path, ports)
    directory = write_log(tmp_path, MIN_ISR)
    command = [sys.executable, "-P", "-m", "quorumlog_server", "-c", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        assert any(line.startswith("READY") for line in node.stdout)
        node.terminate()
        _, errors = node.communicate(timeout=WAIT_S)
    assert node.returncode == 0, errors
    image = read_image(directory)
    assert not image.features and image.metadata_version == 1
    assert image.brokers[NODE_ID].features == ()
