"""The workloads that format a node's directories and open them, as `quorumlog storage format` and the start do."""

from __future__ import annotations

import itertools
import random

from jepsen.crash.check import require
from jepsen.crash.struck_disk import StruckDisk
from jepsen.crash.world import World
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY
from quorumlog_quorum.offline.metadata_survey import survey
from quorumlog_server.config.config import NodeConfig, from_values
from quorumlog_server.directories.directories import NodeDirectories, open_directories
from quorumlog_server.directories.first_voters import FirstVoters
from quorumlog_server.directories.format import Formatted, format_node
from quorumlog_server.directories.secret import new_secret

CLUSTER = "crash-sweep"
SECRET = new_secret(bytes(range(32)))
FIRST_ID = 1_000


def config() -> NodeConfig:
    """Two directories whose parents are not there, and a third one for the metadata."""
    return from_values(
        {
            "node.id": "1",
            "controller.quorum.voters": "1@127.0.0.1:1",
            "log.dirs": "/disks/first/a,/disks/b",
            "metadata.log.dir": "/meta",
        }
    )


def _standalone_config() -> NodeConfig:
    return from_values(
        {
            "node.id": "1",
            "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            "log.dirs": "/disks/first/a,/disks/b",
            "metadata.log.dir": "/meta",
        }
    )


def _format(disk: StruckDisk, first_id: int, *, again: bool = False, standalone: bool = False) -> list[Formatted]:
    """standalone: as the first voter of a quorum that can change, and at a level of its own."""
    numbers = itertools.count(first_id)
    return format_node(
        _standalone_config() if standalone else config(),
        cluster_id=CLUSTER,
        secret=SECRET,
        disk=disk,
        new_uuid=lambda: next(numbers).to_bytes(16, "big"),
        protect=lambda _path: None,
        ignore_formatted=again,
        first_voters=FirstVoters(standalone=standalone),
        first_level=2 if standalone else None,
    )


def format_and_open(world: World) -> None:
    disk = world.process.disk
    world.formatted = {one.path: one.directory_id for one in _format(disk, FIRST_ID, again=True)}
    _open(disk)


def format_first_voter(world: World) -> None:
    disk = world.process.disk
    done = _format(disk, FIRST_ID, again=True, standalone=True)
    world.formatted = {one.path: one.directory_id for one in done}
    _open(disk)


def reopen_first_voter(world: World) -> None:
    """The bootstrap checkpoint names the directory's own id, whatever interrupted the format."""
    disk = world.process.disk
    _format(disk, FIRST_ID + 900, again=True, standalone=True)
    opened = _open(disk)
    world.found = {entry.path: entry.meta.directory_id for entry in opened.opened}
    found = survey(world.disk, f"/meta/{METADATA_DIRECTORY}").voters
    voters = [voter.directory_id for voter in found.voters] if found is not None else []
    require(voters == [world.found["/meta"]], "format", f"voters {voters} in {world.found}")
    require(opened.first.level == 2, "format", f"first level {opened.first.level}")


def half_formatted(world: World, rng: random.Random) -> None:
    """An earlier attempt that lost its power at some call."""
    world.process.disk.watch(rng.randrange(8, 40))
    try:
        _format(world.process.disk, FIRST_ID + 500)
    except BaseException as error:
        if world.process.disk.struck is None:
            raise error
    world.end(rng)


def formatted_before(world: World, _: random.Random) -> None:
    format_and_open(world)
    world.end(None)


def reopen(world: World) -> None:
    """What an operator does after an interruption: format again what is not formatted yet, then start."""
    disk = world.process.disk
    _format(disk, FIRST_ID + 900, again=True)
    opened = _open(disk)
    world.found = {entry.path: entry.meta.directory_id for entry in opened.opened}
    require(opened.cluster_id == CLUSTER, "format", f"cluster {opened.cluster_id}")
    require(opened.secret == SECRET.encode(), "format", "another secret")


def check(world: World) -> None:
    """Every directory has an id of its own, and one that was told stays."""
    found = world.found
    require(len(set(found.values())) == len(config().directories), "format", f"directory ids {found}")
    kept = {path: found.get(path) for path in world.formatted}
    require(kept == world.formatted, "format", f"directory ids {found}, told were {world.formatted}")
    world.formatted = found


def _open(disk: StruckDisk) -> NodeDirectories:
    opened = open_directories(disk, config())
    if opened.failures:
        raise opened.failures[0]
    return opened
