"""The workloads of the quorum: its log and its votes."""

from __future__ import annotations

import random

from jepsen.crash.process import DATA
from jepsen.crash.world import BATCH_RECORDS, World
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY
from quorumlog_quorum.raft.quorum_state import (
    QUORUM_STATE_NAME,
    CorruptQuorumState,
    QuorumState,
    read_quorum_state,
    renew_quorum_state,
)
from quorumlog_storage.rules.epochs import CHECKPOINT_NAME


def metadata(world: World) -> None:
    world.lead()
    world.commit(2)
    world.vote(3)
    world.commit(3)


def truncate_metadata(world: World) -> None:
    world.truncate_metadata(1 + 2 * BATCH_RECORDS)
    world.lead()
    world.commit(4)
    world.vote(1)


def stop_metadata(world: World) -> None:
    world.commit(1)
    world.stop()


def metadata_power_cut(world: World, rng: random.Random) -> None:
    world.commit(2)
    world.vote(3)
    world.disk.unlink(f"{DATA}/{METADATA_DIRECTORY}/{CHECKPOINT_NAME}")
    world.end(rng)


def unreadable_votes(world: World, rng: random.Random) -> None:
    world.lead()
    _stopped(world)
    path = f"{DATA}/{METADATA_DIRECTORY}/{QUORUM_STATE_NAME}"
    file = world.disk.open(path)
    file.truncate(5)
    file.sync()


def renew_votes(world: World) -> None:
    """The operator's way out. It may be repeated, after a crash as well."""
    disk, path = world.process.disk, f"{DATA}/{METADATA_DIRECTORY}/{QUORUM_STATE_NAME}"
    world.quorum_states = [QuorumState(epoch=world.epoch + 1)]
    renew_quorum_state(disk, path, world.epoch, world.epoch)
    world.open()


def open_after_a_renewal(world: World) -> None:
    path = f"{DATA}/{METADATA_DIRECTORY}/{QUORUM_STATE_NAME}"
    try:
        read_quorum_state(world.disk, path, has_records=True)
    except CorruptQuorumState:
        renew_quorum_state(world.disk, path, world.quorum_states[0].epoch - 1, -1)
    world.open()


def _stopped(world: World) -> None:
    world.append({"t": 2})
    world.stop()
    world.end(None)
