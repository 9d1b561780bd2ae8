"""Three real controllers and many brokers without logs, as processes: see broker_crew.py for those of the brokers.

One broker has a process of its own, so that it can be killed alone; the others share two processes. One more node is
formatted and not started: a broker that comes late.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.measuring.machine import MEGABYTE
from bench.measuring.turns import Turns, read_turns
from bench.quorum.fencing import CONTROLLERS, NOTHING, format_roles, turns_file
from bench.three.idle import processor_time_s
from quorumlog.ids import NodeId, Offset
from quorumlog.testing.layout import NodeFiles
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker
from quorumlog_quorum.snapshots import parse_snapshot_name

HOSTS = (4, 5)  # the processes that the brokers share
VICTIM = 6
NEWCOMER = 7
FIRST_MEMBER = 1_000
PER_CREW = 1_000  # ids


class Seen(NamedTuple):
    """An image that all listeners of a process have applied. at_s: of time.monotonic."""

    at_s: float
    offset: Offset
    partitions: int
    led_by_victim: int
    without_leader: int

    @property
    def is_led(self) -> bool:
        """Every partition has a leader, and it is not the victim."""
        return not self.led_by_victim and not self.without_leader


class ClusterNodes(LocalNodes):
    """crews: by host, how many brokers live beside it. following: how many of these fetch from the quorum."""

    crews: Mapping[NodeId, int] = {}
    following: Mapping[NodeId, int] = {}

    @classmethod
    def make(cls, root: Path, picker: PortPicker, changes: Mapping[str, str] = NOTHING) -> ClusterNodes:
        """A new cluster in `root`, which must not exist. changes: Kafka's key names, for every node."""
        made = cls.create(root, NEWCOMER, {}, picker, partial(format_roles, changes))
        assert isinstance(made, ClusterNodes)
        return made

    def command(self, node: NodeFiles) -> list[str]:
        end = ["-c", str(node.config)]
        if node.node_id in CONTROLLERS:
            return [sys.executable, "-m", "bench.nodes.measured_node", str(turns_file(node)), *end]
        first = FIRST_MEMBER + PER_CREW * node.node_id
        crew = (VICTIM, first, self.crews.get(node.node_id, 0), self.following.get(node.node_id, 0))
        files = [str(turns_file(node)), str(images_file(node))]
        return [sys.executable, "-m", "bench.quorum.broker_crew", *files, *map(str, crew), *end]

    def seen(self, node_id: NodeId) -> list[Seen]:
        """The images of this process so far."""
        file = images_file(self.layout.node(node_id))
        if not file.exists():
            return []
        lines = file.read_text().split("\n")
        return [Seen(*json.loads(line)) for line in lines[:-1]]  # the last one may be in the making

    def has_snapshot(self, node_id: NodeId) -> bool:
        """Whether it has loaded one, beside the empty one that a node is formatted with."""
        names = [path.name for path in self.layout.node(node_id).data.rglob("*.checkpoint")]
        return any(found.offset > 0 for name in names if (found := parse_snapshot_name(name)) is not None)

    def used_s(self, node_id: NodeId) -> float:
        """The processor time of the node's process since its start, all threads."""
        process = self.process(node_id)
        assert process is not None, f"node {node_id} does not run"
        return processor_time_s([process.pid])

    def resident_mb(self, node_id: NodeId, what: str = "VmRSS") -> float:
        """what: VmHWM for the most that it has ever had."""
        process = self.process(node_id)
        assert process is not None, f"node {node_id} does not run"
        status = Path(f"/proc/{process.pid}/status").read_text()
        kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{what}:"))
        return kib * 1024 / MEGABYTE

    def turns(self, node_id: NodeId, start_s: float, end_s: float) -> Turns:
        """Of a node that has stopped by itself."""
        return read_turns(turns_file(self.layout.node(node_id)), start_s, end_s)


def images_file(node: NodeFiles) -> Path:
    return node.folder / "images.jsonl"


def crews_of(brokers: int) -> dict[NodeId, int]:
    """How many brokers live beside each host, so that there are this many with hosts and victim. brokers: 3 or more."""
    beside = brokers - len(HOSTS) - 1
    return {host: beside // len(HOSTS) + (number < beside % len(HOSTS)) for number, host in enumerate(HOSTS)}
