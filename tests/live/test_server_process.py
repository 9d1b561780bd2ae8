"""A node's process from outside: what it refuses to start with, its output, and how it ends. Real processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quorumlog.testing.ports import PortPicker
from quorumlog_server.config.config import load
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.secret import new_secret
from quorumlog_server.edge.real_edges import random_uuid
from quorumlog_storage.edge.disk import RealDisk
from tests.live.living_files import modes
from tests.metrics.catalogue import differences
from tests.rules import rule

WAIT_S = 30
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


def command(config: Path, *options: str) -> list[str]:
    return [sys.executable, *options, "-P", "-m", "quorumlog_server", "-c", str(config)]


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Path]:
    """One node with both roles, not formatted, with ports reserved for the test."""
    picker = PortPicker()
    (ports,) = picker.pick(1)
    path = tmp_path / "server.properties"
    path.write_text(
        f"node.id=1\nlog.dirs={tmp_path}/a,{tmp_path}/b\nmetrics.port=0\nlog.format=json\n"
        f"listeners=CLIENT://127.0.0.1:0,INTERNAL://127.0.0.1:{ports.internal}\n"
        f"controller.quorum.voters=1@127.0.0.1:{ports.internal}\n"
    )
    yield path
    picker.close()


def formatted(config: Path) -> Path:
    format_node(
        load(str(config), config.read_text(), {}),
        cluster_id="c",
        secret=new_secret(bytes(range(32))),
        disk=RealDisk(),
        new_uuid=random_uuid,
        protect=lambda name: Path(name).chmod(0o600),
    )
    return config


@contextmanager
def running(config: Path) -> Iterator[subprocess.Popen[str]]:
    with (config.parent / "node.log").open("a") as log:
        process = subprocess.Popen(command(config), stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def next_line(process: subprocess.Popen[str], word: str) -> dict[str, object]:
    """The JSON after the first word of the next line, which must be `word`. Waits until the node prints it or ends."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith(f"{word} "), f"instead of {word}: {line!r}"
    told: dict[str, object] = json.loads(line.removeprefix(word))
    return told


def get(address: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=WAIT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_one_node_prints_its_addresses_serves_and_stops_cleanly(config: Path) -> None:
    with running(formatted(config)) as process:
        listeners = next_line(process, "LISTENING")["listeners"]
        assert isinstance(listeners, dict)
        assert sorted(listeners) == ["CLIENT", "GRPC", "INTERNAL", "metrics"]
        next_line(process, "READY")
        assert get(listeners["metrics"], "/healthz") == (200, "alive\n")
        assert get(listeners["metrics"], "/readyz") == (200, "ready\n")
        status, metrics = get(listeners["metrics"], "/metrics")
        assert status == 200
        assert "quorumlog_active_controller 1" in metrics
        assert differences(metrics) == []
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    assert (config.parent / "a" / CLEAN_SHUTDOWN).exists()
    assert (config.parent / "b" / CLEAN_SHUTDOWN).exists()


def test_only_the_owner_can_read_the_secret(config: Path) -> None:
    formatted(config)
    assert (config.parent / "a" / "cluster.secret").stat().st_mode & 0o777 == 0o600


def test_only_the_owner_can_read_what_a_node_writes(config: Path) -> None:
    form = [sys.executable, "-P", "-m", "quorumlog_cli.main", "storage", "format", "-c", str(config)]
    subprocess.run(form, capture_output=True, timeout=WAIT_S, check=True)
    with running(config) as process:
        next_line(process, "LISTENING")
        next_line(process, "READY")
        written = modes(config.parent / "a") | modes(config.parent / "b")
        assert len(written) > 10
        assert not [str(path) for path, mode in written.items() if mode & 0o077]


@rule("storage 7.2")
def test_a_killed_node_starts_again_and_a_directory_has_one_user(config: Path) -> None:
    with running(formatted(config)) as first:
        next_line(first, "LISTENING")
        next_line(first, "READY")
        second = subprocess.run(command(config), capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert second.returncode == 6
        assert ".lock" in second.stderr
        first.kill()
        first.wait()
    with running(config) as again:
        next_line(again, "LISTENING")
        next_line(again, "READY")


def test_a_port_has_one_user_and_the_second_one_stops_cleanly(config: Path) -> None:
    other = config.with_name("other.properties")
    other.write_text(config.read_text().replace("/a,", "/c,").replace("/b\n", "/d\n"))
    with running(formatted(config)) as first:
        next_line(first, "LISTENING")
        done = subprocess.run(command(formatted(other)), capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert done.returncode == 6
        assert "the port is in use" in done.stderr
        assert "Traceback" not in done.stderr


REFUSALS = [
    ("under -O", ("-O",), "", 2, "does not run under -O"),
    ("a typing error", (), "num.partition=1\n", 2, "did you mean num.partitions?"),
    ("not formatted", (), "", 6, "no meta.properties"),
]


@pytest.mark.parametrize(
    ("options", "more", "code", "said"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS]
)
def test_refused_starts(config: Path, options: tuple[str, ...], more: str, code: int, said: str) -> None:
    config.write_text(config.read_text() + more)
    done = subprocess.run(command(config, *options), capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
