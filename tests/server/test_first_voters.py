"""The first voters of a cluster, as `storage format` writes them: what fits, what is refused, a crash at any call."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from test_format import SECRET

from jepsen.crash.faults import Fault
from jepsen.crash.struck_disk import ProcessEnded, Strike, StruckDisk
from jepsen.sim.machine.disk import SimDisk
from quorumlog.ids import ZERO_UUID, format_uuid
from quorumlog.records.control import Voter, VoterEndpoint
from quorumlog.rpc.transport import Address
from quorumlog_quorum.snapshots import SnapshotReader, snapshot_path
from quorumlog_server.config.config import NodeConfig, from_values
from quorumlog_server.directories.directories import open_directories
from quorumlog_server.directories.first_voters import (
    BOOTSTRAP,
    STATIC,
    FirstVoters,
    FormatRefused,
    InitialController,
    parse_initial_controllers,
)
from quorumlog_server.directories.format import Formatted, format_node
from quorumlog_storage.directory.directory import read_meta
from quorumlog_storage.directory.meta_properties import WrongDirectory
from quorumlog_storage.files.disk import Disk

LOG = "/meta/__cluster_metadata-0"
IDS = {node: (9_000 + node).to_bytes(16, "big") for node in (1, 2, 3)}
LIST = ",".join(f"{node}@127.0.0.1:{9_000 + node}:{format_uuid(directory)}" for node, directory in IDS.items())
INITIAL = FirstVoters(initial=parse_initial_controllers(LIST))
STANDALONE, LATER = FirstVoters(standalone=True), FirstVoters(later=True)


def config(node_id: int = 1, roles: str = "broker,controller", **changes: str) -> NodeConfig:
    clients = f"CLIENT://127.0.0.1:{8_000 + node_id}," if "broker" in roles else ""
    values = {
        "node.id": str(node_id),
        "process.roles": roles,
        "controller.quorum.bootstrap.servers": "127.0.0.1:9001",
        "listeners": f"{clients}INTERNAL://127.0.0.1:{9_000 + node_id}",
        "log.dirs": "/data/a,/data/b",
        "metadata.log.dir": "/meta",
    }
    return from_values({**values, **{key.replace("_", "."): value for key, value in changes.items()}})


def format_(disk: Disk, node: NodeConfig, first: FirstVoters, first_id: int = 1_000, **changes: Any) -> list[Formatted]:
    numbers = itertools.count(first_id)
    return format_node(
        node,
        cluster_id="c1",
        secret=SECRET,
        disk=disk,
        new_uuid=lambda: next(numbers).to_bytes(16, "big"),
        protect=lambda _path: None,
        first_voters=first,
        **changes,
    )


def voters_in(disk: Disk) -> tuple[int | None, list[Voter]]:
    """Of the bootstrap checkpoint, read to its end."""
    reader = SnapshotReader(disk, snapshot_path(LOG, BOOTSTRAP), BOOTSTRAP)
    while reader.read():
        pass
    assert reader.records == 0 and reader.heading.voters is not None
    return reader.heading.kraft_version, list(reader.heading.voters.voters)


def voter(node: int, directory: bytes) -> Voter:
    return Voter(node, directory, (VoterEndpoint("INTERNAL", "127.0.0.1", 9_000 + node),), 0, 1)


def test_a_standalone_controller_is_the_one_voter() -> None:
    disk = SimDisk()
    format_(disk, config(), STANDALONE)
    disk.crash(random.Random(1))
    assert voters_in(disk) == (1, [voter(1, read_meta(disk, "/meta").directory_id)])
    assert disk.list(LOG) == ["00000000000000000000-0000000000.checkpoint"]
    open_directories(disk, config())


@pytest.mark.parametrize("node", [1, 2, 3])
def test_each_initial_controller_takes_its_directory_id_and_names_all(node: int) -> None:
    disk = SimDisk()
    done = format_(disk, config(node), INITIAL)
    assert {one.path: one.directory_id for one in done}["/meta"] == IDS[node] == read_meta(disk, "/meta").directory_id
    assert voters_in(disk) == (1, [voter(number, directory) for number, directory in IDS.items()])


@pytest.mark.parametrize(("node", "first"), [(config(4), LATER), (config(4, "broker"), STATIC)])
def test_a_node_that_joins_later_names_nobody(node: NodeConfig, first: FirstVoters) -> None:
    disk = SimDisk()
    format_(disk, node, first)
    assert not disk.exists(LOG)


STATIC_SET = config(1, controller_quorum_voters="1@127.0.0.1:9001")
REFUSED = [
    (
        "static voters, and first ones",
        STATIC_SET,
        STANDALONE,
        "controller.quorum.voters is set, so the voters of node 1",
    ),
    ("static voters, and none", STATIC_SET, LATER, "controller.quorum.voters is set"),
    ("neither", config(), STATIC, "node 1 is a controller, .* say one of --standalone, --initial-controllers or"),
    ("a broker as voter", config(4, "broker"), STANDALONE, "node 4 is a broker alone"),
    ("a broker among voters", config(1, "broker"), INITIAL, "node 1 is a broker alone"),
    ("not among them", config(4), INITIAL, r"node 4 is not among --initial-controllers \[1, 2, 3\]"),
    (
        "at another address",
        config(1, advertised_listeners="INTERNAL://10.0.0.1:9001"),
        INITIAL,
        "--initial-controllers says 127.0.0.1:9001, its configuration 10.0.0.1:9001",
    ),
]


@pytest.mark.parametrize(("node", "first", "says"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_what_does_not_fit_the_configuration(node: NodeConfig, first: FirstVoters, says: str) -> None:
    disk = SimDisk()
    with pytest.raises(FormatRefused, match=says):
        format_(disk, node, first)
    assert disk.list("/") == []


BAD_LISTS = [
    ("no directory id", "1@127.0.0.1:9001", "is not ID@HOST:PORT:DIRECTORY_ID"),
    ("no port", f"1@127.0.0.1:{format_uuid(IDS[1])}", "is not|has no port"),
    ("port 0", f"1@127.0.0.1:0:{format_uuid(IDS[1])}", "node 1 has port 0"),
    ("a zero id", f"1@127.0.0.1:1:{format_uuid(ZERO_UUID)}", "is reserved"),
    ("a reserved id", f"1@127.0.0.1:1:{format_uuid((99).to_bytes(16, 'big'))}", "is reserved"),
    ("a node twice", LIST + "," + LIST.split(",")[0], "node id 1 is given twice"),
    (
        "an address twice",
        f"{LIST.split(',')[0]},7@127.0.0.1:9001:{format_uuid(b'x' * 16)}",
        "address .* is given twice",
    ),
    ("a directory twice", f"{LIST.split(',')[0]},7@h:1:{format_uuid(IDS[1])}", "directory id .* is given twice"),
    ("nothing", "", "is not ID@HOST"),
]


@pytest.mark.parametrize(("text", "says"), [c[1:] for c in BAD_LISTS], ids=[c[0] for c in BAD_LISTS])
def test_a_bad_list_is_refused(text: str, says: str) -> None:
    with pytest.raises(FormatRefused, match=says):
        parse_initial_controllers(text)


def test_a_list_is_read() -> None:
    (found,) = parse_initial_controllers(f" 3@[::1]:9003:{format_uuid(IDS[3])} ")
    assert found == InitialController(3, Address("::1", 9_003), IDS[3])


def test_a_formatted_directory_keeps_its_id_and_its_checkpoint() -> None:
    disk = SimDisk()
    format_(disk, config(), STANDALONE)
    before = voters_in(disk)
    format_(disk, config(), STANDALONE, 5_000, ignore_formatted=True)
    assert voters_in(disk) == before
    with pytest.raises(WrongDirectory, match=r"/meta has directory id .*, --initial-controllers says"):
        format_(disk, config(), INITIAL, ignore_formatted=True)


def test_a_log_without_its_directorys_properties_is_not_taken_over() -> None:
    disk = SimDisk()
    for path in ("/meta", LOG):
        disk.make_directory(path)
    disk.open(f"{LOG}/00000000000000000000.log", create=True).pwritev([b"x"], 0)
    with pytest.raises(FormatRefused, match="holds a metadata log, though its directory is not formatted"):
        format_(disk, config(), STANDALONE)


@pytest.mark.parametrize("fault", [Fault.KILL, Fault.POWER_CUT])
@pytest.mark.parametrize("first", [STANDALONE, INITIAL], ids=["standalone", "initial"])
def test_a_formatted_directory_has_its_checkpoint_whatever_interrupted_the_format(
    first: FirstVoters, fault: Fault
) -> None:
    counting = StruckDisk(SimDisk())
    counting.watch()
    format_(counting, config(), first)
    for number in range(len(counting.calls)):
        rng, disk = random.Random(number), SimDisk()
        struck = StruckDisk(disk)
        struck.watch(number, Strike(fault, rng.choice((0.0, 0.5, 1.0))))
        with pytest.raises(ProcessEnded):
            format_(struck, config(), first)
        if fault is Fault.KILL:
            disk.kill()
        else:
            disk.crash(rng)
        format_(disk, config(), first, 5_000, ignore_formatted=True)
        _, voters = voters_in(disk)
        assert voter(1, read_meta(disk, "/meta").directory_id) in voters
        assert len(voters) == (1 if first is STANDALONE else 3)
        open_directories(disk, config()).close()
