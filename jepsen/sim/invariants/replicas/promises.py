"""Persist before send: when a message leaves, its promise must be on disk already.

Checks the bytes on the wire, decoded by the production codec, against the disk of the sending host:
- what `vote_promises.py` lists for votes and the fetches of the quorum;
- sync-before-replica-fetch: a fetch acknowledges only synced records (written ones, where the topic leaves durability
  to the page cache). A fetch of an earlier leadership is left out: it was made then, and waited on the host until its
  connection stood. The follower may have truncated its log for the next leader since, as it may while a fetch is on its
  way; or it is no replica any more, and its log is gone. The leader epoch in the fetch protects against all of
  these: no leader of a later epoch takes it, and what an earlier one commits needs the next leader, which was in the
  ISR.
"""

from __future__ import annotations

from collections.abc import Callable

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.metadata.vote_promises import VotePromises
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message, Phase
from jepsen.sim.network.sockets import LANE
from jepsen.sim.settings import COMPACTED_TOPIC
from jepsen.sim.truth.durability import Durability
from jepsen.sim.truth.mirrors import Mirrors, log_id
from quorumlog.messages.fetch import FetchPartition, FetchRequest
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.wire.format.cursor import Cursor
from quorumlog.wire.format.frame_writer import LENGTH_BYTES
from quorumlog.wire.format.header import read_fixed
from quorumlog.wire.protocol import apis
from quorumlog.wire.protocol.codec import decode_request
from quorumlog_broker.partition.key import PartitionKey

_FETCH = BY_REQUEST[FetchRequest]
_LANE_FETCH_API = apis.BY_REQUEST[FetchRequest]
_LANE_FETCH = f"{LANE}{_FETCH.method.name}"


class Promises(VotePromises):
    def __init__(
        self,
        machines: dict[str, Machine],
        mirrors: Mirrors,
        durability: Durability,
        findings: Findings,
        on_replica_fetch: Callable[[Machine], None],
    ) -> None:
        """on_replica_fetch: called before a fetch leaves by which a broker acknowledges records."""
        super().__init__(machines, mirrors, findings)
        self._durability = durability
        self._on_replica_fetch = on_replica_fetch

    def on_message(self, message: Message) -> None:
        super().on_message(message)
        if message.phase is not Phase.REQUEST or message.source not in self._machines:
            return
        if message.path == _FETCH.method.path:
            self._on_fetch(message, _FETCH.codec.decode_request(message.data))
        elif message.path == _LANE_FETCH:
            cursor = Cursor(memoryview(message.data)[LENGTH_BYTES:])
            self._on_fetch(message, decode_request(_LANE_FETCH_API, cursor, read_fixed(cursor)).request)

    def _on_fetch(self, message: Message, request: FetchRequest) -> None:
        if request.replica is None:
            return
        machine = self._machines[message.source]
        self._on_replica_fetch(machine)
        for topic in request.topics:
            name = _topic_name(machine, topic.topic_id)
            for partition in topic.partitions if name and name != COMPACTED_TOPIC else ():
                if _is_of_an_earlier_leadership(machine, (topic.topic_id, partition.index), partition):
                    continue
                log = log_id(f"{name}-{partition.index}", topic.topic_id)
                end = self._durability.end_of(log, self._mirrors.of(machine, log))
                if end < partition.fetch_offset:
                    what = f"{message.source} acknowledges {partition.fetch_offset} of {name}-{partition.index}"
                    held = f"it has synced up to {end}"
                    self._findings.broken("sync-before-replica-fetch", f"{what}; {held}")


def _is_of_an_earlier_leadership(machine: Machine, key: PartitionKey, fetch: FetchPartition) -> bool:
    plane = data_plane_of(machine)
    if plane is None:
        return False
    replica, known = plane.registry.replicas.get(key), plane.registry.image.partition(*key)
    if replica is not None:
        return replica.core.leader_epoch > fetch.current_leader_epoch
    return known is not None and known.leader_epoch > fetch.current_leader_epoch


def _topic_name(machine: Machine, topic_id: bytes) -> str:
    if machine.node is None:
        return ""
    topic = machine.node.loader.image.topics.get(topic_id)
    return "" if topic is None else topic.name
