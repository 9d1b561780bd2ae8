"""A real node that stops while one of its three log directories is gone leaves the others in order."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.testing.ports import PortPicker
from tests.live.test_server_process import CLEAN_SHUTDOWN, WAIT_S, formatted, get, next_line, running
from tests.live.timed import until


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Path]:
    """One node with three log directories; the first one holds the metadata log."""
    picker = PortPicker()
    (ports,) = picker.pick(1)
    path = tmp_path / "server.properties"
    path.write_text(
        f"node.id=1\nlog.dirs={tmp_path}/a,{tmp_path}/b,{tmp_path}/c\nmetrics.port=0\nlog.format=json\n"
        f"listeners=CLIENT://127.0.0.1:0,INTERNAL://127.0.0.1:{ports.internal}\n"
        f"controller.quorum.voters=1@127.0.0.1:{ports.internal}\n"
    )
    yield formatted(path)
    picker.close()


def marker(config: Path, name: str) -> dict[str, int] | None:
    path = config.parent / name / CLEAN_SHUTDOWN
    if not path.exists():
        return None
    told: dict[str, int] = json.loads(path.read_text())
    return told


@pytest.mark.timeout(120)
def test_a_removed_directory_costs_the_others_no_recovery(config: Path) -> None:
    with running(config) as process:
        listeners = next_line(process, "LISTENING")["listeners"]
        assert isinstance(listeners, dict)
        next_line(process, "READY")
        assert marker(config, "a") is None, "a start takes the marker"
        shutil.rmtree(config.parent / "c")
        until(lambda: str(config.parent / "c") in get(listeners["metrics"], "/node")[1], 30, "its failure")
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    first = marker(config, "a")
    assert first is not None and first["version"] == 0 and first["brokerEpoch"] >= 0
    assert marker(config, "b") == first and marker(config, "c") is None
