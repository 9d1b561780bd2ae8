"""What must hold where a leader is elected that was in neither ISR nor ELR. Mutants are judged by these names.

- unclean-only-without-candidates: with `unclean.recovery.strategy=Balanced` both were empty just before. So no replica
  was known that holds every committed record. (With None the change that empties them may elect the last known leader.)
- longest-log-leads: with `unclean.recovery.strategy=Balanced` the leader has told the active controller the end of its
  log, and no replica that is alive has told it a later one, by leader epoch, then offset.
- log-end-is-told: the end that a replica tells is that of its log on the disk.
- unclean-is-told: the new leader counts as recovering, and the controller has counted the election.

They are judged by the tip of the active controller after each of its steps. A partition that changed more than once in
one step is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.metadata.level_states import TAKES_AN_IMPORT
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message, Phase
from jepsen.sim.time.scheduler import NS_PER_S
from jepsen.sim.truth.mirrors import Mirrors, log_id
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, BrokerEpoch, NodeId, Uuid
from quorumlog.messages.controller import GetReplicaLogInfoRequest, ReplicaLogInfo
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog_quorum.controller.shell.service import ControllerService
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.registration import RECOVERING, PartitionRegistration

UNCLEAN, LONGEST, LOG_ENDS = "unclean elections", "elections of the longest log", "ends of logs told"
_CALL = BY_REQUEST[GetReplicaLogInfoRequest]
_STRATEGY = "unclean.recovery.strategy"

_Key = tuple[Uuid, int]
_End = tuple[int, int]  # (epoch of the last batch, end offset)


@dataclass(frozen=True, slots=True)
class _Told:
    broker_epoch: BrokerEpoch
    end: _End
    at_ns: int


@dataclass(slots=True)
class _Seen:
    """What one process of a controller showed. tip: of the last step in which it was active."""

    tip: Image | None = None
    unclean: int = 0


class UncleanElectionInvariants(Invariant):
    """machines: all of them, by host. counts: what happened."""

    def __init__(self, machines: dict[str, Machine], mirrors: Mirrors, findings: Findings) -> None:
        self._machines, self._mirrors, self._findings = machines, mirrors, findings
        self._told: dict[str, dict[_Key, dict[NodeId, _Told]]] = {}  # by the host of the controller that asked
        self._seen: dict[tuple[str, int], _Seen] = {}  # by host and life
        self._image = EMPTY  # the newest committed one
        self.counts = {UNCLEAN: 0, LONGEST: 0, LOG_ENDS: 0}

    @property
    def exercised(self) -> Mapping[str, int]:
        return {name: count for name, count in self.counts.items() if count}

    def on_image(self, image: Image) -> None:
        self._image = image

    def on_message(self, message: Message) -> None:
        if message.path != _CALL.method.path or message.phase is not Phase.RESPONSE:
            return
        response = _CALL.codec.decode_response(message.data)
        machine = self._machines[message.source]
        told = self._told.setdefault(message.destination, {})
        for info in response.partitions:
            if info.error_code == ErrorCode.NONE:
                end = (info.last_written_leader_epoch, info.log_end_offset)
                self.counts[LOG_ENDS] += 1
                one = _Told(response.broker_epoch, end, self._findings.now_ns())
                told.setdefault((info.topic_id, info.index), {})[machine.node_id] = one
                self._check_end(machine, info)

    def _check_end(self, machine: Machine, info: ReplicaLogInfo) -> None:
        topic = self._image.topics.get(info.topic_id)
        if topic is None:
            return
        mirror = self._mirrors.of(machine, log_id(f"{topic.name}-{info.index}", topic.id))
        if mirror.end != info.log_end_offset:
            what = f"{machine.host} says that {topic.name}-{info.index} ends at {info.log_end_offset}"
            self._findings.broken("log-end-is-told", f"{what}; on its disk it ends at {mirror.end}")

    def after_controller(self, machine: Machine) -> None:
        node = machine.node
        controller = None if node is None else node.controller
        seen = self._seen.setdefault((machine.host, machine.life), _Seen())
        if controller is None or not controller.active:
            seen.tip = None
            self._told.pop(machine.host, None)
            return
        before, tip = seen.tip, controller.tip
        if tip is before:
            return
        seen.tip = tip
        if before is None:
            return
        for topic_id, topic in tip.topics.items():
            old = before.topics.get(topic_id)
            if old is None or old is topic:
                continue
            for index, partition in topic.partitions.items():
                known = old.partitions.get(index)
                if known is not None and known is not partition and _is_unclean(known, partition):
                    seen.unclean += 1
                    self._judge(machine, controller, seen, (topic_id, index), known)

    def _judge(
        self, machine: Machine, controller: ControllerService, seen: _Seen, key: _Key, before: PartitionRegistration
    ) -> None:
        topic = controller.tip.topics[key[0]]
        after, name = topic.partitions[key[1]], f"{topic.name}-{key[1]}"
        self.counts[UNCLEAN] += 1
        balanced = controller.tip.topic_config(topic.name).get(_STRATEGY) == "Balanced"
        if balanced and (before.isr or before.eligible_leader_replicas):
            held = f"ISR {before.isr}, ELR {before.eligible_leader_replicas}"
            what = f"broker {after.leader} leads {name} beside its {held}"
            self._findings.broken("unclean-only-without-candidates", what)
        if after.leader_recovery_state != RECOVERING or controller.unclean_elections < seen.unclean:
            what = f"broker {after.leader} leads {name}; {machine.host} counted {controller.unclean_elections} such"
            self._findings.broken("unclean-is-told", f"{what} elections of {seen.unclean}")
        if balanced:
            self.counts[LONGEST] += 1
            self._check_longest(machine, controller.tip, key, name, after)

    def _check_longest(
        self, machine: Machine, tip: Image, key: _Key, name: str, partition: PartitionRegistration
    ) -> None:
        told = {
            node_id: one
            for node_id, one in self._told.get(machine.host, {}).get(key, {}).items()
            if node_id in partition.replicas and _is_alive(tip, node_id, one.broker_epoch)
        }
        leader = told.get(partition.leader)
        arrived_ns = self._findings.now_ns() - NS_PER_S  # later answers may still be on their way
        longer = {node: one.end for node, one in told.items() if leader and one.end > leader.end}
        if leader is None or any(told[node].at_ns <= arrived_ns for node in longer):
            what = f"broker {partition.leader} leads {name} with {leader and leader.end}"
            self._findings.broken("longest-log-leads", f"{what}; {machine.host} was told {longer}")


def _is_unclean(before: PartitionRegistration, after: PartitionRegistration) -> bool:
    """One change, and the new leader was not known to be whole. All replicas of an import that is finished are.

    Whom a leader takes into the ISR is whole. Where that ends a reassignment which takes the leader itself away, the
    same change makes another one lead, perhaps the one that has just joined.
    """
    if before.leader_recovery_state == TAKES_AN_IMPORT:
        return False
    if after.leader == NO_NODE or after.partition_epoch != before.partition_epoch + 1:
        return False
    is_handed_over = before.leader in before.removing_replicas and before.leader not in after.replicas
    whole = (*before.isr, *before.eligible_leader_replicas, *(after.isr if is_handed_over else ()))
    return after.leader_epoch > before.leader_epoch and after.leader not in whole


def _is_alive(tip: Image, node_id: NodeId, broker_epoch: BrokerEpoch) -> bool:
    broker = tip.brokers.get(node_id)
    return broker is not None and broker.active and broker.broker_epoch == broker_epoch
