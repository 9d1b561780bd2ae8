"""The local cluster's files, ports and processes, without starting a node."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from quorumlog.testing.layout import (
    MARKER,
    Layout,
    LayoutError,
    NodeFiles,
    NotThere,
    PortTaken,
    check_unused,
    check_whole,
    node_folder,
    read_layout,
)
from quorumlog.testing.node_config import properties_of
from quorumlog.testing.nodes import LocalNodes, NodeState
from quorumlog.testing.ports import HOST, NodePorts, NoFreePorts, PortPicker
from quorumlog.testing.processes import ProcessId, read_pid_file, start, write_pid_file
from quorumlog.testing.protected import Access, client_options, node_keys, protect
from quorumlog.testing.waiting import TimedOut, wait_until
from quorumlog_cli.commands.nodes import up
from quorumlog_cli.commands.nodes.console import login_line
from quorumlog_cli.connecting.find import find_root
from quorumlog_cli.local.format_all import format_all
from quorumlog_cli.local.log_lines import LogFollower, parse_line
from quorumlog_cli.local.ready import missing_quorum
from quorumlog_cli.main import main
from quorumlog_cli.profiles.profile import Target
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_server.config.config import load, read_config

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


def layout_in(root: Path, count: int = 3) -> Layout:
    nodes = tuple(NodeFiles(i, node_folder(root, i), NodePorts.row(20_000 + 3 * i)) for i in range(1, count + 1))
    return Layout(root, CLUSTER_ID, nodes)


# --- files ---


def test_the_marker_holds_the_whole_layout(tmp_path: Path) -> None:
    layout = layout_in(tmp_path)
    layout.write_marker()
    assert read_layout(tmp_path) == layout
    assert layout.bootstrap_servers == "127.0.0.1:20003,127.0.0.1:20006,127.0.0.1:20009"


def test_no_marker_is_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(NotThere, match="quorumlog up"):
        read_layout(tmp_path)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "cluster_id": "x", "nodes": [{}]}']
)
def test_a_damaged_marker_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / MARKER).write_text(content)
    with pytest.raises(LayoutError, match="cannot be read"):
        read_layout(tmp_path)


def test_a_root_with_a_cluster_takes_no_other(tmp_path: Path) -> None:
    """Neither of `up` nor of `restore local`."""
    (tmp_path / MARKER).write_text("{}")
    with pytest.raises(LayoutError, match="holds a cluster already"):
        check_unused(tmp_path)


def test_a_half_made_root_is_never_formatted(tmp_path: Path) -> None:
    (tmp_path / "n1").mkdir()
    with pytest.raises(LayoutError, match="interrupted start"):
        LocalNodes.create(tmp_path, 3, {}, PortPicker())
    assert [path.name for path in tmp_path.iterdir()] == ["n1"]


@pytest.mark.parametrize("name", ["a,b", "a\\b"])
def test_a_root_that_a_properties_file_cannot_hold_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(LayoutError, match="cannot be a data directory"):
        check_unused(tmp_path / name)


def test_a_lost_directory_is_never_formatted_again(tmp_path: Path) -> None:
    layout = layout_in(tmp_path)
    for node in layout.nodes[:2]:
        node.data.mkdir(parents=True)
        (node.data / "meta.properties").write_text("version=1\n")
    with pytest.raises(LayoutError, match="node 3 is missing"):
        check_whole(layout)


FORMATS = pytest.mark.parametrize("format_", [None, format_all], ids=["by the command", "here"])


@FORMATS
def test_a_failed_format_leaves_nothing(tmp_path: Path, format_: Callable[[Layout], None] | None) -> None:
    picker = PortPicker()
    try:
        with pytest.raises(LayoutError, match=r"formatting .* failed: .*below 100"):
            LocalNodes.create(tmp_path / "c", 1, {"broker.session.timeout.ms": "1"}, picker, format_)
    finally:
        picker.close()
    assert list(tmp_path.iterdir()) == []


@FORMATS
def test_a_new_cluster_is_formatted_with_one_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: Callable[[Layout], None] | None
) -> None:
    monkeypatch.setenv("QUORUMLOG_LOG_DIRS", str(tmp_path / "elsewhere"))  # would apply to every node
    picker = PortPicker()
    try:
        layout = LocalNodes.create(tmp_path / "c", 2, {}, picker, format_).layout
    finally:
        picker.close()
    secrets = {(node.data / "cluster.secret").read_text() for node in layout.nodes}
    modes = {(node.data / "cluster.secret").stat().st_mode & 0o777 for node in layout.nodes}
    assert (len(secrets), modes) == (1, {0o600})
    metas = [(node.data / "meta.properties").read_text().splitlines() for node in layout.nodes]
    assert all(f"cluster.id={layout.cluster_id}" in meta for meta in metas)
    assert [line for meta in metas for line in meta if line.startswith("node.id")] == ["node.id=1", "node.id=2"]


def test_a_created_cluster_has_the_decided_defaults(tmp_path: Path) -> None:
    """Three replicas, two in sync, auto-creation, a session of 3 s, loopback only."""
    nodes = layout_in(tmp_path).nodes
    config = load("server.properties", properties_of(nodes[0], nodes, {"num.partitions": "4"}), {})
    assert (config.controller.default_replication_factor, config.controller.num_partitions) == (3, 4)
    assert config.topic_defaults["min.insync.replicas"] == "2"
    assert (config.lifecycle.session_timeout_ms, config.broker.auto_create_topics) == (3_000, True)
    assert {listener.address.host for listener in config.listeners} == {HOST}
    assert config.warnings == ()


@pytest.mark.parametrize(("count", "replicas", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")])
def test_replication_fits_the_nodes(tmp_path: Path, count: int, replicas: str, in_sync: str) -> None:
    nodes = layout_in(tmp_path, count).nodes
    text = properties_of(nodes[0], nodes, {})
    assert f"default.replication.factor={replicas}\n" in text
    assert f"min.insync.replicas={in_sync}\n" in text


def test_storage_format_shares_one_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = layout_in(tmp_path, 2).nodes
    arguments = ["storage", "format", "-o", "json", "-t", CLUSTER_ID]
    for node in nodes:
        node.folder.mkdir()
        node.config.write_text(properties_of(node, nodes, {}))
        arguments += ["-c", str(node.config)]
    assert main(arguments) == Exit.DONE
    document = json.loads(capsys.readouterr().out)
    assert document["cluster_id"] == CLUSTER_ID
    assert [row["formatted"] for row in document["directories"]] == [True, True]
    secrets = [(node.data / "cluster.secret").read_text() for node in nodes]
    assert secrets[0] == secrets[1]
    assert (nodes[0].data / "cluster.secret").stat().st_mode & 0o077 == 0
    assert main(arguments) == Exit.PRECONDITION
    assert main([*arguments, "--ignore-formatted"]) == Exit.DONE


# --- finding a cluster ---


def test_a_cluster_is_found_from_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORUMLOG_HOME", str(tmp_path / "home"))
    root, below = tmp_path / ".quorumlog", tmp_path / "a" / "b"
    root.mkdir()
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    with pytest.raises(CliError):
        find_root(None)
    layout_in(root).write_marker()
    assert find_root(None) == root
    assert find_root(Path("elsewhere")) == Path("elsewhere")


# --- ports ---


def test_two_pickers_never_pick_the_same() -> None:
    first, second = PortPicker(), PortPicker()
    try:
        picked = [*first.pick(3), *second.pick(3)]
        assert len({ports.client for ports in picked}) == 6
        assert all(1024 < ports.client < ports.internal < ports.admin < 32_768 for ports in picked)
    finally:
        first.close()
        second.close()


def test_a_port_in_use_is_skipped() -> None:
    picker = PortPicker()
    try:
        (ports,) = picker.pick(1)
        picker.close()
        with socket.create_server((HOST, ports.internal)):
            (other,) = picker.pick(1)
        assert other != ports
    finally:
        picker.close()


def test_ports_that_were_asked_for_are_these_or_none() -> None:
    free = PortPicker()
    (row,) = free.pick(1)
    free.close()
    picker, other = PortPicker(row.client), PortPicker(row.client)
    try:
        assert picker.pick(1) == [row]
        with pytest.raises(NoFreePorts, match="belong to another local cluster: choose another first port"):
            other.pick(1)
        picker.close()
        told = f"port {row.admin}, of {row.client} to {row.replication}, is in use by process {os.getpid()} "
        with socket.create_server((HOST, row.admin)), pytest.raises(NoFreePorts, match=told):
            other.pick(1)
    finally:
        picker.close()
        other.close()
    with pytest.raises(NoFreePorts, match="there is no port 65536"):
        PortPicker(65_532).pick(1)


def test_further_nodes_have_their_ports_a_hundred_higher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorumlog.testing.ports.taken_ports", lambda _: [])
    picker = PortPicker(31_007)
    try:
        assert [ports.client for ports in picker.pick(3)] == [31_007, 31_107, 31_207]
    finally:
        picker.close()


def test_a_node_whose_port_was_taken_is_not_started(tmp_path: Path) -> None:
    picker = PortPicker()
    try:
        nodes = LocalNodes.create(tmp_path / "c", 1, {}, picker)
        with socket.create_server((HOST, nodes.layout.nodes[0].ports.client)):
            with pytest.raises(PortTaken, match=rf"in use by process {os.getpid()} .* quorumlog up --port"):
                nodes.start()
        assert nodes.state(1) is NodeState.STOPPED
    finally:
        picker.close()


# --- processes ---


def test_a_process_differs_from_a_later_one_with_its_pid(tmp_path: Path) -> None:
    child, process = start([sys.executable, "-c", "input()"], tmp_path / "log", dict(os.environ))
    child.wait()  # no standard input: it ends itself
    assert not process.alive
    itself = ProcessId(os.getpid(), "some other time")
    assert not itself.alive and not itself.send(signal.SIGKILL)


def test_pause_and_end_are_detected(tmp_path: Path) -> None:
    child, process = start([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path / "log", dict(os.environ))
    try:
        write_pid_file(tmp_path / "pid", process)
        assert read_pid_file(tmp_path / "pid") == process
        assert process.send(signal.SIGSTOP)
        wait_until(lambda: process.paused, 10, "the pause")
        assert process.alive
        assert process.send(signal.SIGCONT)
        wait_until(lambda: not process.paused, 10, "the end of the pause")
    finally:
        process.send(signal.SIGKILL)
        wait_until(lambda: not process.alive, 10, "the end")  # a zombie has ended too
        child.wait()


@pytest.mark.parametrize("content", ["", "1", "{}", '{"pid": "x", "started": ""}'])
def test_an_invalid_pid_file_means_no_process(tmp_path: Path, content: str) -> None:
    (tmp_path / "pid").write_text(content)
    assert read_pid_file(tmp_path / "pid") is None


def test_a_failed_wait_names_its_condition() -> None:
    with pytest.raises(TimedOut, match=r"waited 0 s for rain; the sky is blue"):
        wait_until(lambda: False, 0, "rain", lambda: "the sky is blue")


# --- logs ---


def test_log_lines_for_people() -> None:
    line = parse_line(
        2, json.dumps({"event": "hello", "level": "warning", "timestamp": "2026-01-02T03:04:05.678901Z", "epoch": 4})
    )
    assert line.render() == "2 | 03:04:05.678 warning hello epoch=4"
    assert line.at_least("warning") and not line.at_least("error")
    assert parse_line(2, "READY {}").render() == "2 |                      READY {}"


def test_a_follower_returns_each_complete_line_once(tmp_path: Path) -> None:
    path = tmp_path / "node.log"
    follower = LogFollower(1, path, from_end=False)
    assert list(follower.read_new()) == []
    path.write_text("one\ntw")
    assert [line.text for line in follower.read_new()] == ["one"]
    with path.open("a") as file:
        file.write("o\n")
    assert [line.text for line in follower.read_new()] == ["two"]
    assert list(follower.read_new()) == []


def test_the_plugin_is_found_and_loads_nothing_heavy() -> None:
    heavy = ("grpc", "numpy", "pyarrow", "quorumlog.client")
    program = f"import sys, quorumlog.testing.plugin\nprint([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_a_row_of_ports_is_held_while_an_inheriting_process_lives(tmp_path: Path) -> None:
    first, second, third = PortPicker(), PortPicker(), PortPicker()
    try:
        (ports,) = first.pick(1)
        command = [sys.executable, "-c", "import time; time.sleep(60)"]
        child, process = start(command, tmp_path / "log", dict(os.environ), first.locks)
        first.close()
        assert second.pick(1) != [ports]
        process.send(signal.SIGKILL)
        child.wait()
        third.hold([ports])
        assert len(third.locks) == 1
    finally:
        for picker in (first, second, third):
            picker.close()


# --- up ---


class Ends(Exception):
    """What ends `up`."""


def no_end(*_: object) -> None:
    """Nothing does here."""


def ends(*_: object) -> None:
    raise Ends


def terminal_gone(_: str) -> None:
    raise OSError(errno.EIO, "the terminal was closed")


@pytest.mark.parametrize(
    ("ending", "background", "stopped"),
    [
        ("start", True, [[1, 3]]),  # one of them may run
        ("wait_ready", True, [[1, 3]]),
        ("_quorum", True, [[1, 3]]),
        ("_tell", True, []),
        ("_tell", False, [[1, 3]]),
        ("follow", False, [[1, 3]]),
        ("", True, []),
    ],
)
@pytest.mark.parametrize("say", [no_end, terminal_gone])
def test_up_stops_the_nodes_that_it_started_and_no_others(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ending: str,
    background: bool,
    stopped: list[list[int]],
    say: Callable[[str], None],
) -> None:
    """Node 2 ran before. ending: the step in which up ends. say: to a terminal, or to one that was closed."""
    cluster = LocalNodes(layout_in(tmp_path), PortPicker())
    done: list[list[int]] = []
    monkeypatch.setattr(cluster, "state", lambda node_id: NodeState.RUNNING if node_id == 2 else NodeState.STOPPED)
    monkeypatch.setattr(cluster, "start", ends if ending == "start" else no_end)
    monkeypatch.setattr(cluster, "stop", lambda nodes, timeout_s: done.append(nodes))
    for step in ("wait_ready", "_quorum", "_tell", "follow", "select_local"):
        monkeypatch.setattr(up, step, ends if step == ending else no_end)
    monkeypatch.setattr("quorumlog_cli.terminal.output.say", say)
    try:
        up.run(cluster, background, "warning")
    except (Ends, OSError):
        assert ending or not background
    assert done == stopped


def test_ctrl_c_is_told_by_whose_nodes_they_are(tmp_path: Path) -> None:
    cluster = LocalNodes(layout_in(tmp_path), PortPicker())
    assert up._on_interrupt(cluster, [1, 2, 3]) == "stops the nodes"
    assert up._on_interrupt(cluster, [2]).startswith("stops nodes 2; the others ran before")
    assert "the nodes run on" in up._on_interrupt(cluster, [])


# --- with TLS ---


@FORMATS
def test_a_protected_cluster_is_formatted_with_its_first_user(
    tmp_path: Path, format_: Callable[[Layout], None] | None
) -> None:
    picker = PortPicker()
    try:
        nodes = LocalNodes.create(tmp_path / "c", 2, {}, picker, format_, tls=True)
    finally:
        picker.close()
    layout = read_layout(tmp_path / "c")
    assert layout == nodes.layout and layout.user == "admin"
    here = Target(bootstrap_servers="", origin="here", data_dir=layout.root)
    assert login_line(here) == f"  log in as   admin; its password is in {tmp_path}/c/admin.password"
    assert login_line(Target(bootstrap_servers="", origin="elsewhere")) == ""
    for node in layout.nodes:
        config = read_config(str(node.config), (), {})
        assert config.warnings == () and config.rights.on and config.rights.super_users == ("User:admin",)
        assert all(security.authenticates for security in config.listener_security.values())
        assert config.nodes.said == "mtls" and config.denied.path == str(node.folder / "../tls/revoked.txt")
    private = [*(tmp_path / "c").glob("tls/*.key"), tmp_path / "c" / "admin.password"]
    assert len(private) == 4 and {path.stat().st_mode & 0o777 for path in private} == {0o600}


@pytest.mark.parametrize("tls", [True, False])
def test_purge_leaves_no_key_and_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: bool) -> None:
    """`up` refused the folder from then on, as that of an interrupted start."""
    monkeypatch.setenv("QUORUMLOG_HOME", str(tmp_path / "home"))
    picker = PortPicker()
    try:
        nodes = LocalNodes.create(tmp_path / "c", 1, {}, picker, None, tls=tls)
    finally:
        picker.close()
    if tls:
        Access(nodes.layout).write_client_files()
    else:
        (tmp_path / "c" / "client.properties").write_text("somebody's own\n")
    assert main(["purge", "--yes", "--data", str(tmp_path / "c")]) == 0
    assert [path.name for path in tmp_path.glob("c/*")] == ([] if tls else ["client.properties"])


@FORMATS
def test_a_failed_protected_format_leaves_nothing(tmp_path: Path, format_: Callable[[Layout], None] | None) -> None:
    picker = PortPicker()
    try:
        with pytest.raises(LayoutError, match=r"formatting .* failed: .*below 100"):
            LocalNodes.create(tmp_path / "c", 1, {"broker.session.timeout.ms": "1"}, picker, format_, tls=True)
    finally:
        picker.close()
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_without_tls_is_not_turned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picker = PortPicker()
    try:
        LocalNodes.create(tmp_path / "c", 1, {}, picker, format_all)
    finally:
        picker.close()
    assert main(["up", "-d", "--tls", "--data", str(tmp_path / "c")]) == Exit.PRECONDITION
    said = capsys.readouterr().err
    assert "was made without TLS, and stays so" in said and "docs/tls-and-users.md" in said
    assert not (tmp_path / "c" / "tls").exists() and read_layout(tmp_path / "c").user == ""


JAVAS_VALUE = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="admin" password="se-cret";'
CLIENT_OPTIONS = [
    (
        "quorumlog",
        {
            "bootstrap_servers": "{servers}",
            "sasl_username": "admin",
            "sasl_password": "se-cret",
            "ssl_truststore_location": "{ca}",
        },
    ),
    ("librdkafka", {"bootstrap.servers": "{servers}", "sasl.username": "admin", "ssl.ca.location": "{ca}"}),
    ("java", {"bootstrap.servers": "{servers}", "sasl.jaas.config": JAVAS_VALUE, "ssl.truststore.location": "{ca}"}),
    ("kafka-python", {"bootstrap_servers": "{servers}", "sasl_plain_password": "se-cret", "ssl_cafile": "{ca}"}),
]


@pytest.mark.parametrize(("family", "among"), CLIENT_OPTIONS, ids=[case[0] for case in CLIENT_OPTIONS])
def test_client_options_of_each_family(tmp_path: Path, family: str, among: dict[str, str]) -> None:
    layout = replace(layout_in(tmp_path), user="admin")
    (tmp_path / "admin.password").write_text("se-cret\n")
    options = client_options(layout, family)
    said = {"servers": layout.bootstrap_servers, "ca": str(tmp_path / "tls" / "ca.pem")}
    assert {key: options[key] for key in among} == {key: text.format(**said) for key, text in among.items()}
    plain = client_options(layout_in(tmp_path), family)
    assert list(plain.values()) == [layout.bootstrap_servers]


def test_a_family_of_clients_that_is_not_known_is_an_error(tmp_path: Path) -> None:
    for layout in (layout_in(tmp_path), replace(layout_in(tmp_path), user="admin")):
        with pytest.raises(ValueError, match="'ruby' is no family of clients; there are quorumlog, librdkafka, java"):
            client_options(layout, "ruby")


def test_nodes_that_were_started_by_hand_run(tmp_path: Path) -> None:
    """They lock their directories. Commands said that the quorum is lost, and that answers may be old."""
    nodes = LocalNodes(layout_in(tmp_path), PortPicker())
    assert missing_quorum(nodes).startswith("the quorum is lost: 0 of 3 controllers run, 2 are needed")
    for node_id in (1, 2):
        nodes.layout.node(node_id).data.mkdir(parents=True)
    with open(nodes.layout.node(1).data / ".lock", "w") as one, open(nodes.layout.node(2).data / ".lock", "w") as two:
        fcntl.flock(one, fcntl.LOCK_EX)
        assert "1 of 3 controllers runs" in missing_quorum(nodes)
        fcntl.flock(two, fcntl.LOCK_EX)
        assert missing_quorum(nodes) == ""


FOREIGN = [
    ("of another cluster", 1, "this is cluster", "storage format -t"),
    ("of another node", 2, "the certificate is of node 1, and this is node 2", "name the file of this node"),
]


@pytest.mark.parametrize(("node_id", "what", "cure"), [case[1:] for case in FOREIGN], ids=[case[0] for case in FOREIGN])
def test_storage_format_refuses_a_certificate_that_is_not_of_the_node(
    tmp_path: Path, node_id: int, what: str, cure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before it makes anything: the node would not start."""
    nodes = layout_in(tmp_path, 2).nodes
    protect(tmp_path, CLUSTER_ID, [1])
    node = nodes[node_id - 1]
    node.folder.mkdir()
    node.config.write_text(properties_of(node, nodes, {**node_keys(1), "log.format": "json"}))
    cluster_id = CLUSTER_ID if node_id == 2 else "AAAAAAAAAAAAAAAAAAAAAg"
    assert main(["storage", "format", "-c", str(node.config), "-t", cluster_id]) == Exit.USAGE
    said = capsys.readouterr().err
    assert what in said and cure in said and not node.data.exists()
    (tmp_path / "tls" / "node-1.keystore.pem").unlink()
    assert main(["storage", "format", "-c", str(node.config), "-t", cluster_id]) == Exit.DONE, "it comes later"
