"""All that a node takes from the machine. The simulation gives the same node other edges, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from quorumlog.clock import Clock
from quorumlog.ids import Uuid
from quorumlog.nursery import OnCrash
from quorumlog.rpc.transport import Identity, Transport
from storage.disk import Disk
from storage.worker import Worker
from storage.writer import DirectoryWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """transport: made once per node, with the identity that the directories gave it.
    worker: performs this writer's turns, away from the loop; made once for each.
    rng: a source of randomness for each concern, by its name.
    new_uuid: 16 random bytes.
    protect: let nobody but the owner read this file.
    on_crash: the process ends, now: an error that nobody handled must not leave a half-living node (name, error).
    """

    clock: Clock
    disk: Disk
    transport: Callable[[Identity], Transport]
    worker: Callable[[DirectoryWriter], Worker]
    rng: Callable[[str], Random]
    new_uuid: Callable[[], Uuid]
    protect: Callable[[str], None]
    on_crash: OnCrash
