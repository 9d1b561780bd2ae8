"""What a topic with `durability=replicated` promises, and which machines have lost what they acknowledged.

There, a record is acknowledged when the ISR has it in its page caches. The promise, which is weaker than that of
`durability=synced`:

**An acknowledged record survives as long as fewer than `min.insync.replicas` machines end uncleanly at once, or none of
them loses power.** "At once": a machine counts until its next process has joined the ISR, for nobody else knows what
its disk kept. A kill of processes alone loses nothing, however many there are. Beside a power cut it counts: the
controller sees only that a process was not stopped in order. Once every replica that could lead has come back that way
it elects the last known leader (KIP-966), and that one may be the machine that lost power. Otherwise the unsynced end
of a log may be lost, and nothing else: what is left is a prefix of what was committed, all replicas agree on it, and no
offset is given twice in one leader epoch. A broker that an operator unregisters counts as one that was killed: what it
holds counts for nothing from then on (decision 64), and the next power cut may meet the last copy.

A topic whose durability was raised keeps this promise for what it has: nobody says which record was acknowledged when.

So, for these logs:

- the invariants of partitions look at what is written, not at what is synced, and leave out machines that lost power;
- where the promise does not hold, a leader may be elected without the end of the committed records. Then the truth is
  cut to the prefix that this leader has (a `Loss`), and everything is measured by that from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import COMPACTED_TOPIC, MIN_ISR
from jepsen.sim.truth.log_mirror import LogMirror
from jepsen.sim.truth.mirrors import Mirrors, log_id
from quorumlog.configs.topic import TopicConfig
from quorumlog.ids import NodeId, Offset, Uuid
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import PartitionRegistration


class Loss(NamedTuple):
    """Committed records at and after `end` were lost, as the promise allows it."""

    log: str
    end: Offset
    at_ns: int


class _Setting(NamedTuple):
    settings: dict[str, str]
    synced: bool
    min_isr: int


class Durability:
    """losses: in their order. broken: how often more machines lost power than the promise covers."""

    def __init__(self, brokers: Sequence[Machine], mirrors: Mirrors, now_ns: Callable[[], int]) -> None:
        self._brokers = {machine.node_id: machine for machine in brokers}
        self._mirrors, self._now_ns = mirrors, now_ns
        self._settings: dict[str, _Setting] = {}  # by topic name
        self._min_isr: dict[str, int] = {}  # of logs that are left to the page cache: the smallest that was ever set
        self._lost: dict[str, dict[NodeId, int]] = {}  # by log and machine that lost power: its last life before that
        self._killed: dict[str, dict[NodeId, int]] = {}  # by log and machine: the life that began after an unclean end
        self._unclean: dict[NodeId, int] = {}  # the newest life of a machine that was looked at for this
        self._replicas: dict[str, tuple[NodeId, ...]] = {}  # of the same logs
        self._weak: dict[Uuid, None] = {}  # topics that are or were left to the page cache
        self._broken: dict[str, None] = {}  # logs whose promise does not hold at present
        self._with_losses: dict[str, None] = {}
        self.losses: list[Loss] = []
        self.broken = 0

    # --- what happens ---

    def on_image(self, image: Image) -> None:
        self._note_unclean_starts()
        for topic in image.sorted_topics():
            if topic.name == COMPACTED_TOPIC:
                continue
            settings = image.topic_config(topic.name)
            known = self._settings.get(topic.name)
            if known is None or known.settings != settings:
                synced = TopicConfig.from_map(settings).synced
                min_isr = int(settings.get("min.insync.replicas", MIN_ISR))
                known = self._settings[topic.name] = _Setting(settings, synced, min_isr)
            if not known.synced or topic.id in self._weak:
                self._weak[topic.id] = None
                for index in topic.partitions:
                    log = log_id(f"{topic.name}-{index}", topic.id)
                    self._min_isr[log] = min(known.min_isr, self._min_isr.get(log, known.min_isr))
                    self._replicas[log] = topic.partitions[index].replicas
                    self._note_unregistered(log, image)
                    self._let_return(log, topic.partitions[index], image)

    def on_power_cut(self, machine: Machine) -> None:
        """Called before the disk loses its cache: a mirror may have to be read only now."""
        for log in self._held_by(machine):
            mirror, truth = self._mirrors.of(machine, log), self._mirrors.truth(log)
            if mirror.agrees_at(truth.end, truth.chain):
                lost = self._lost.setdefault(log, {})
                lost[machine.node_id] = machine.life
                self._judge(log)

    def _note_unclean_starts(self) -> None:
        for machine in self._brokers.values():
            if machine.unclean_life <= self._unclean.get(machine.node_id, 0):
                continue
            self._unclean[machine.node_id] = machine.unclean_life
            for log in self._held_by(machine):
                if self._is_whole(log, machine):
                    self._killed.setdefault(log, {})[machine.node_id] = machine.unclean_life
                    self._judge(log)

    def _note_unregistered(self, log: str, image: Image) -> None:
        for node_id in self._replicas[log]:
            machine = self._brokers.get(node_id)
            if machine is not None and node_id not in image.brokers and self._is_whole(log, machine):
                self._killed.setdefault(log, {})[node_id] = machine.life
                self._judge(log)

    def _held_by(self, machine: Machine) -> list[str]:
        """Logs that are left to the page cache, of which this machine is a replica."""
        return [log for log in self._min_isr if machine.node_id in self._replicas[log]]

    def _judge(self, log: str) -> None:
        """Whether the promise holds now."""
        lost = self._lost.get(log, {})
        if lost and len({**lost, **self._killed.get(log, {})}) >= self._min_isr[log]:
            if log not in self._broken:
                self._broken[log] = None
                self.broken += 1
        else:
            self._broken.pop(log, None)

    def may_lead(self, log: str, mirror: LogMirror) -> bool:
        """Whether a replica may be elected that lacks committed records. If so, they are lost from now on."""
        if log not in self._broken:
            return False
        truth = self._mirrors.truth(log)
        truth.cut_to_prefix_of(mirror)
        self.losses.append(Loss(log, truth.end, self._now_ns()))
        self._with_losses[log] = None
        return True

    # --- what holds ---

    def is_synced(self, log: str) -> bool:
        return log not in self._min_isr

    def has_losses(self, log: str) -> bool:
        return log in self._with_losses

    def has_lost(self, log: str, machine: Machine) -> bool:
        """Whether the machine has lost power, and has not joined the ISR since."""
        return machine.node_id in self._lost.get(log, ())

    def end_of(self, log: str, mirror: LogMirror) -> Offset:
        """Exclusive end of what this replica may acknowledge: synced, or written where the topic asks for no more."""
        return mirror.durable_end() if self.is_synced(log) else mirror.end

    def holds(self, log: str, machine: Machine) -> bool:
        """Whether the machine has all committed records, as durably as the topic asks for, or lost them with power."""
        return self._is_whole(log, machine) or self.has_lost(log, machine)

    def _is_whole(self, log: str, machine: Machine) -> bool:
        mirror = self._mirrors.of(machine, log)
        return self._mirrors.truth(log).is_held_by(mirror, self.end_of(log, mirror))

    def count_lost(self, log: str) -> int:
        """How many machines have lost power, and have not joined the ISR since."""
        return len(self._lost.get(log, ()))

    def _let_return(self, log: str, partition: PartitionRegistration, image: Image) -> None:
        lost, killed = self._lost.get(log, {}), self._killed.get(log, {})
        if not lost and not killed:
            return
        for node_id, machine in self._brokers.items():
            broker = image.brokers.get(node_id)
            if machine.life == lost.get(node_id) or machine.node is None or broker is None:
                continue
            if broker.incarnation_id == machine.node.incarnation_id and node_id in partition.isr:
                if partition.leader == node_id and not self._is_whole(log, machine):
                    # It lost power, or what those lost that did was more (strategy Balanced). `may_lead` judges.
                    self.may_lead(log, self._mirrors.of(machine, log))
                lost.pop(node_id, None)
                killed.pop(node_id, None)
        self._judge(log)
