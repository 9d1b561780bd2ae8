"""docs/operations.md over real processes: every command of a section in its order, and what the cluster is then."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from operations_world import IDS, PAGE, Operator, commands_of

from quorumlog.testing.ports import HOST, PortPicker
from tests.rules import rule

TOPIC = "orders"
PARTITIONS = 3


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    picker = PortPicker()
    made = Operator.with_three_nodes(tmp_path, picker)
    try:
        for node in IDS:
            made.wait(lambda node=node: made.is_ready(node), f"node {node} is ready")
        yield made
    finally:
        made.close()
        picker.close()


def fill(operator: Operator, name: str) -> set[bytes]:
    """Acknowledged by all replicas that must have them."""
    values = {f"{name}-{number}".encode() for number in range(60)}
    with operator.client() as cluster, cluster.producer() as producer:
        for value in sorted(values):
            producer.send(TOPIC, value)
        producer.flush(30)
    return values


def read(operator: Operator) -> set[bytes | None]:
    with operator.client() as cluster, cluster.consumer(TOPIC, start="earliest", stop="latest") as consumer:
        return {record.value for record in consumer}


def create(operator: Operator) -> None:
    with operator.client() as cluster:
        cluster.admin.create_topic(TOPIC, PARTITIONS, 3)
    operator.wait(lambda: all(isr == list(IDS) for isr in operator.in_sync(TOPIC)), "all replicas are in sync")


def all_in_sync(operator: Operator) -> bool:
    return operator.in_sync(TOPIC) == [list(IDS)] * PARTITIONS


def test_a_dead_brokers_disk_is_replaced(operator: Operator) -> None:
    create(operator)
    before = fill(operator, "before")
    operator.kill(2)
    shutil.rmtree(operator.root / "node2" / "data")
    operator.follow("Replace a dead broker's disk", {"quorumlog storage info -c node2/server.properties": 6})
    operator.wait(lambda: all_in_sync(operator), "node 2 holds its replicas again")
    assert (operator.root / "node2" / "data" / f"{TOPIC}-0").is_dir()
    operator.kill(1, 3)  # what node 2 has copied is all that is left
    for node in (1, 3):
        operator.start(node)
        operator.wait(lambda node=node: operator.is_ready(node), f"node {node} is ready")
    assert read(operator) == before


@rule("storage 12.5")
def test_a_directory_comes_back(operator: Operator) -> None:
    operator.kill(2)
    properties, more = operator.root / "node2" / "server.properties", operator.root / "node2" / "more"
    data = operator.root / "node2" / "data"
    properties.write_text(properties.read_text().replace(f"log.dirs={data}\n", f"log.dirs={data},{more}\n"))
    operator.values["DIRECTORY"] = str(more)
    info = operator.bash("quorumlog storage info -c node1/server.properties")
    cluster_id, incarnation = next(row.split()[1:3] for row in info.splitlines() if "/meta " in f"{row} ")
    words = f"-t {cluster_id} --cluster-incarnation {incarnation} --ignore-formatted"
    operator.bash(f"quorumlog storage format -c node2/server.properties {words}")
    operator.start(2)
    operator.wait(lambda: operator.is_ready(2), "node 2 is ready")
    create(operator)
    before = fill(operator, "before")
    assert [one for one in more.iterdir() if one.name.startswith(TOPIC)]
    listed = "quorumlog log-dirs list --node 2 -b SERVERS"
    more.rename(operator.root / "away")
    operator.wait(lambda: "offline" in said(operator, listed), "the directory is missed")
    (operator.root / "away").rename(more)
    operator.follow("Bring a log directory back", {listed: 5})
    assert "offline" not in operator.said["quorumlog log-dirs list -b SERVERS"]
    operator.wait(lambda: all_in_sync(operator), "node 2 follows again")
    assert read(operator) == before
    operator.follow("Empty a disk", {})
    assert not [one for one in more.iterdir() if one.name.startswith(TOPIC) and not one.name.endswith("-delete")]
    assert all((data / f"{TOPIC}-{index}").is_dir() for index in range(PARTITIONS))
    assert all_in_sync(operator) and read(operator) == before
    operator.follow("Move a partition to another disk of its node", {})
    assert (more / f"{TOPIC}-0").is_dir() and read(operator) == before


def test_every_section_with_commands_is_followed_by_a_test() -> None:
    """On nodes with hand-written files; Kafka's files need a suite that has them."""
    tests = [PAGE.parents[1] / "tests" / name for name in ("live", "formats")]
    text = "".join(path.read_text() for folder in tests for path in folder.glob("test_*_page.py"))
    followed = set(re.findall(r'\b(?:follow|followed|commands|commands_of)\((?:operator, )?"([^"]+)"', text))
    sections = re.findall(r"^## (.*)$", PAGE.read_text(), re.MULTILINE)
    assert [name for name in sections if list(commands_of(name)) and name not in followed] == []


def test_no_command_of_the_page_stands_outside_of_what_is_run() -> None:
    """Indented code is shown only; a fenced block is run."""
    text = re.sub(r"^ *```console\n.*?^ *```$", "", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^ {4,}(?:\$ )?(?:quorumlog|kafka-[a-z-]+) .*$", text, re.MULTILINE) == []


def said(operator: Operator, command: str) -> str:
    with contextlib.suppress(AssertionError):  # its exit code tells the state, too
        return operator.bash(operator.filled_in(command), 5)
    return ""


def test_a_dead_controller_is_replaced(operator: Operator) -> None:
    """Node 3 is a broker, too: first its other disk is alive, then both are dead."""
    operator.wait(lambda: followed(operator, "Let the voters change"), "all voters to tell the leader about themselves")
    create(operator)
    before = fill(operator, "before")
    for dead in (["meta"], ["meta", "data"]):
        operator.kill(3)
        for name in dead:
            shutil.rmtree(operator.root / "node3" / name)
        operator.follow("Replace a dead controller", {})
        operator.wait(lambda: all_in_sync(operator), "node 3 has all replicas")
    with operator.client() as cluster:
        found = cluster.admin.describe_quorum()
        assert [row.replica_id for row in found.voters] == list(IDS) and found.kraft_version == 1
    operator.kill(2)  # now node 3 is needed for a majority
    with operator.client() as cluster:
        cluster.admin.create_topic("made-by-1-and-3", 1, 2)
    assert read(operator) == before


def followed(operator: Operator, section: str) -> bool:
    try:
        operator.follow(section, {})
    except AssertionError:
        return False
    return True


def test_a_lost_majority_is_recovered(operator: Operator) -> None:
    create(operator)
    before = fill(operator, "before")
    let_node_1_lead(operator)
    operator.kill(2, 3)
    operator.kill(1)
    shutil.copy(operator.root / "node2" / "server.properties", operator.root / "node2.old")
    without_unsafe = "quorumlog storage recover -c node1/server.properties --other node3/meta"
    operator.follow("Lost majority", {without_unsafe: 6})
    operator.wait(lambda: all_in_sync(operator), "all three hold all replicas")
    after = fill(operator, "after")
    assert read(operator) == before | after
    with operator.client() as cluster:
        found = cluster.admin.describe_quorum()
        assert (found.leader_id, sorted(voter.replica_id for voter in found.voters)) == (1, [1, 2, 3])
    the_old_node_2_is_refused(operator)
    assert read(operator) == before | after


def let_node_1_lead(operator: Operator) -> None:
    """So that its log reaches furthest."""
    for _ in range(20):
        leader = operator.wait(lambda: max(0, operator.leader()), "the quorum has a leader")
        if leader == 1:
            return
        operator.kill(leader)
        operator.start(leader)
        operator.wait(lambda node=leader: operator.is_ready(node), f"node {leader} is ready")
        operator.wait(lambda: all_in_sync(operator), "all replicas are in sync")
    raise AssertionError("node 1 was never elected")


def the_old_node_2_is_refused(operator: Operator) -> None:
    """Its disks of before the recovery are switched on again, in the place of the new node 2."""
    operator.kill(2)
    for name in ("meta", "data"):
        (operator.root / "node2" / name).rename(operator.root / "node2" / f"{name}.new")
        (operator.root / "node2" / f"{name}.lost").rename(operator.root / "node2" / name)
    shutil.copy(operator.root / "node2.old", operator.root / "node2" / "server.properties")
    operator.start(2)
    told = f"--cluster-incarnation {operator.values['INCARNATION']}"
    text = "node 2 is of an earlier cluster incarnation, 0; move its directories away, then there: "
    for log, who in (("node2.log", "refuses this node: "), ("node1.log", "refused ")):
        operator.wait(lambda log=log, who=who: _says(operator.root / log, who, text, told), f"{log} says {who}{text}")
    assert operator.leader() == 1


def _says(log: Path, *texts: str) -> bool:
    return any(all(text in line for text in texts) for line in log.read_text().splitlines())


def test_all_controllers_move_at_once(operator: Operator) -> None:
    operator.wait(lambda: followed(operator, "Let the voters change"), "all voters to tell the leader about themselves")
    create(operator)
    before = fill(operator, "before")
    for node in IDS:
        operator.stop(node)
    picker = PortPicker()
    try:
        _give_new_ports(operator, picker)
        operator.follow("Move controllers to other addresses", {})
        new = [ports.internal for ports in operator.ports]
        operator.wait(lambda: _voters_ports(operator) == new, "each voter to tell its new address")
        operator.wait(lambda: all_in_sync(operator), "all replicas are in sync")
        leader = operator.leader()  # without the lines: the log has the addresses
        operator.kill(leader)
        operator.start(leader)
        operator.wait(lambda: operator.is_ready(leader), f"node {leader} is ready")
        assert read(operator) == before
    finally:
        picker.close()


def _give_new_ports(operator: Operator, picker: PortPicker) -> None:
    """In the files, and in what the page's capitals stand for."""
    old, operator.ports = operator.ports, picker.pick(len(IDS))
    changes = {
        str(a): str(b)
        for one, two in zip(old, operator.ports, strict=True)
        for a, b in zip(one.all, two.all, strict=True)
    }
    swap = lambda text: re.sub(r"(?<=:)\d+\b", lambda port: changes.get(port[0], port[0]), text)  # noqa: E731
    for node in IDS:
        path = operator.root / f"node{node}" / "server.properties"
        path.write_text(swap(path.read_text()))
    operator.values["MOVED"] = ",".join(
        f"{node}@{HOST}:{one.internal}>{HOST}:{two.internal}"
        for node, one, two in zip(IDS, old, operator.ports, strict=True)
    )
    operator.values["SERVERS"] = swap(operator.values["SERVERS"])


def _voters_ports(operator: Operator) -> list[int]:
    with operator.client() as cluster:
        return [endpoint.port for one in cluster.admin.describe_quorum().nodes for endpoint in one.endpoints]
