"""One simulation of a majority that is lost, recovered on one survivor, and comes back.

    result = run(seed)

1. Three controllers and three brokers work. The survivor falls behind for a while in some runs, so that what the
   others committed meanwhile is lost.
2. The other two controllers lose their power, "for ever". The survivor is recovered by the production function.
   Brokers are adopted, or formatted anew where that is refused. One may stay what it was. In some runs the survivor's
   log ends inside a metadata transaction of the lost controllers.
3. The cluster of the new incarnation works. Then the lost controllers get their power again, with their disks and
   their configuration, and elect a leader of the old incarnation. New and old work side by side; nodes are killed.
4. Whatever is left of the old incarnation is formatted anew and joins, the controllers as voters. In some runs the
   survivor is lost then, too, and they lead without it.

What must hold, looked at after every step:

- one-incarnation: no listener carries out a call of a node of another incarnation, in either direction.
- follows-its-own: no node of the new incarnation takes a node of the old one for the quorum's leader.
- no-way-back: the survivor, once it leads the new incarnation, is in no epoch that the old one has brought about.
- recovered-metadata: what was acknowledged after the recovery, and what the survivor held at it, is in the metadata of
  every node in the end, and nothing that the old leader has taken since then.
- adopted-knew-no-more: no broker is adopted that knew a change of a partition which the recovered cluster has lost.
- recovered-records: what the recovery wrote is in force, and nothing of a transaction that the lost ones had begun.
- refused: at the end of 3, every internal call between the two incarnations is answered INCONSISTENT_CLUSTER_ID.

This does not run under the usual invariants, which know one history of one cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from jepsen.sim.incarnations.two_incarnations import CALL_MS, NEW, OLD, Stopped, TwoIncarnations
from jepsen.sim.invariants.metadata.quorum import raft_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import CLUSTER_ID, CONTROLLERS, DATA, INTERNAL_PORT, METADATA_LOG, SECRET, config_of
from jepsen.sim.simulation import run_alone
from quorumlog.messages.common import Endpoint
from quorumlog.messages.metadata_records import BeginTransactionRecord, TopicRecord
from quorumlog.messages.quorum import AddRaftVoterRequest
from quorumlog.records.rowwise.values import encode_values
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY, METADATA_PARTITION
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_quorum.offline.lost_majority import SKIPPED_PRODUCER_IDS, RecoveryRefused
from quorumlog_quorum.offline.metadata_survey import survey
from quorumlog_quorum.raft import VoterKey
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.directories.adopt import adopt
from quorumlog_server.directories.first_voters import FirstVoters
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.recover import Recovered, recover
from quorumlog_storage.directory.checkpointed_log import CheckpointedLog
from quorumlog_storage.directory.directory import read_meta
from quorumlog_storage.directory.offset_files import LOST_OFFSETS, RECOVERY_POINTS, OffsetFile
from quorumlog_storage.segment.batch import received_batches
from quorumlog_storage.segment.log_config import LogConfig

HALF_MADE = "half-made"  # a topic of the transaction that the lost controllers had begun


@dataclass(slots=True)
class Result:
    """exercised: what happened, and how often."""

    seed: int
    findings: list[Any]
    exercised: dict[str, int] = field(default_factory=dict)


def run(seed: int) -> Result:
    return run_alone(lambda: LostMajority(seed))


class LostMajority(TwoIncarnations):
    """The script."""

    def run(self) -> Result:
        try:
            self._work()
            self._lose()
            self._recover()
            self._old_majority_returns()
            self.cross_calls()
            self._join()
        except Stopped:
            pass
        return Result(self.seed, self.findings.found, self.counts)

    def _work(self) -> None:
        for machine in self.machines.values():
            machine.format()
            machine.start()
        self.until(lambda: self.leader(OLD) is not None and self.all_ready(), "starts")
        for number in range(self.rng.randint(1, 4)):
            self.create(OLD, f"early-{number}")

    def _lose(self) -> None:
        if self.rng.random() < 0.6:  # what is committed from now on, the survivor does not hold
            self.count("survivors that were behind")
            for machine in self.machines.values():
                if machine is not self.survivor:
                    self.network.cut_both(self.survivor.host, machine.host)
            self.run_for_ms(self.rng.randint(0, 3_000))
            self.until(lambda: self.leader(OLD) not in (None, self.survivor), "is led without the survivor")
            for number in range(self.rng.randint(0, 3)):
                self.create(OLD, f"unseen-{number}")
        self.run_for_ms(self.rng.randint(0, 500))
        for machine in self.rng.sample(self.lost, len(self.lost)):
            machine.power_cut()
            self.run_for_ms(self.rng.randint(0, 300))
        for machine in self.machines.values():
            if self.rng.random() < 0.5:
                machine.power_cut()
            else:
                machine.kill()
        self.network.heal_all()

    def _leave_transaction_open(self) -> None:
        """The lost controllers were in the middle of a large change, whose first batch reached the survivor."""
        disk, path = self.survivor.disk, f"{DATA}/{METADATA_DIRECTORY}"
        points, lost = OffsetFile(disk, f"{path}/{RECOVERY_POINTS}"), OffsetFile(disk, f"{path}/{LOST_OFFSETS}")
        on_loss = partial(lost.raise_to, METADATA_PARTITION)
        log = CheckpointedLog.open(disk, path, LogConfig(), points, METADATA_PARTITION, clean=False, on_loss=on_loss)
        found = survey(disk, path)
        if not found.in_transaction:
            begun = (BeginTransactionRecord(name="lost"), TopicRecord(name=HALF_MADE, topic_id=b"h" * 16))
            values = [encode_record(record, found.image.metadata_version) for record in begun]
            log.log.append(received_batches(encode_values(values, found.end_offset, found.last_epoch, 7)))
        log.close()
        self.count("transactions that the lost controllers left open")

    def _check_recovered(self) -> None:
        image = self.image_of(self.survivor)
        holds = image.incarnation == self.incarnation and image.next_producer_id >= SKIPPED_PRODUCER_IDS
        what = f"{image.incarnation}, next producer id {image.next_producer_id}, topics {sorted(image.topic_ids)}"
        self.check(holds and HALF_MADE not in image.topic_ids, "recovered-records", what)

    def _recover(self) -> None:
        if self.scheduler.rng("open transaction").random() < 0.5:
            self._leave_transaction_open()
        done = recover(
            self.survivor.disk,
            self.survivor.config,
            new_uuid=lambda: self.rng.randbytes(16),
            wall_ms=7,
            unsafe=True,
        )
        self.incarnation = done.intent.incarnation
        self._enters(self.survivor)
        brokers = [machine for host, machine in self.machines.items() if host not in CONTROLLERS]
        for machine in self.rng.sample(brokers, len(brokers)):
            if machine is not brokers[0] and self.rng.random() < 0.25:
                self.count("brokers left in the old incarnation")
                continue
            self._bring_along(machine, done)
        self.until(lambda: self.leader(NEW) is self.survivor, "the survivor leads")
        self.until(self.all_ready, "the recovered cluster works")
        self._check_recovered()
        self.must |= set(self.image_of(self.survivor).topic_ids)
        self.create(NEW, "after-recovery")

    def _bring_along(self, machine: Machine, done: Recovered) -> None:
        try:
            adopt(
                machine.disk,
                machine.config,
                incarnation=self.incarnation,
                end_offset=done.intent.end_offset,
                last_epoch=done.intent.last_epoch,
                new_uuid=lambda: self.rng.randbytes(16),
            )
            self.count("brokers adopted")
            beyond = self.known.beyond(machine.host, survey(self.survivor.disk, METADATA_LOG).image)
            self.check(not beyond, "adopted-knew-no-more", f"{machine.host} was adopted, and knew {beyond[:3]}")
        except RecoveryRefused:
            self.count("brokers that knew more")
            self._format_anew(machine)
        self._enters(machine)

    def _old_majority_returns(self) -> None:
        old = [machine for machine in self.machines.values() if self.side[machine.host] == OLD]
        for machine in self.rng.sample(old, len(old)):
            machine.start()
            self.run_for_ms(self.rng.randint(0, 1_000))
        self.until(lambda: self.leader(OLD) is not None, "the old majority elects a leader")
        for number in range(self.rng.randint(2, 5)):
            self.create(NEW, f"after-{number}")
            if self.rng.random() < 0.7:
                self.try_old(f"too-late-{number}")
            if self.rng.random() < 0.5:
                self._strike(self.rng.choice(list(self.machines.values())))
            self.run_for_ms(self.rng.randint(0, 2_000))

    def _strike(self, machine: Machine) -> None:
        if not machine.alive:
            return
        self.count("restarts beside the other incarnation")
        self.rng.choice((machine.kill, machine.power_cut))()
        self.run_for_ms(self.rng.randint(0, 500))
        machine.start()
        self.until(lambda: self.leader(NEW) is self.survivor, "the survivor leads again")
        self.until(lambda: self.leader(OLD) is not None, "the old majority elects a leader again")

    def _join(self) -> None:
        """What is left of the old incarnation is formatted anew and joins, the controllers as voters."""
        for machine in self.machines.values():
            if self.side[machine.host] == OLD:
                machine.kill()
                self._format_anew(machine)
                self._enters(machine)
                self.count("nodes formatted anew")
        self.until(self.all_ready, "all join")
        for machine in self.lost:
            self.until(partial(self._is_voter, machine), f"{machine.host} is a voter")
        self.may_change_leader = True
        if self.rng.random() < 0.5:
            self.count("survivors that were lost, too")
            self.survivor.power_cut()
            self.until(lambda: self.leader(NEW) is not None, "the new voters elect a leader")
            self.create(NEW, "without-the-survivor")
            self.survivor.start()
        self.until(self.all_ready, "all are ready")
        self.create(NEW, "after-the-join")
        nodes = list(self.machines.values())
        self.until(lambda: all(self.must <= set(self.image_of(machine).topic_ids) for machine in nodes), "all is there")
        for machine in nodes:
            topics = set(self.image_of(machine).topic_ids)
            self.check(not topics & self.must_not, "recovered-metadata", f"{machine.host} has {topics & self.must_not}")
            found = self.image_of(machine).incarnation
            self.check(found == self.incarnation, "recovered-metadata", f"{machine.host} is in {found}")

    def _enters(self, machine: Machine) -> None:
        """The machine starts in the new incarnation, with the survivor as the one voter."""
        self.side[machine.host] = NEW
        machine.config = self._config(machine.host)
        machine.start()

    def _config(self, host: str) -> NodeConfig:
        """Without a static set of voters."""
        servers = f"{self.survivor.host}:{INTERNAL_PORT}"
        return config_of(
            host,
            self.lane,
            {**self.settings, "controller.quorum.voters": "", "controller.quorum.bootstrap.servers": servers},
        )

    def _is_voter(self, machine: Machine) -> bool:
        """Asks the leader to add it."""
        leader = self.leader(NEW)
        if leader is None or leader.node is None or leader.node.driver is None or leader.loop is None:
            return False
        raft = raft_of(leader)
        key = VoterKey(machine.node_id, read_meta(machine.disk, DATA).directory_id)
        if raft is not None and raft.voters.names(key):
            return (raft.history.offset or 0) < raft.high_watermark
        endpoint = Endpoint(name="INTERNAL", host=machine.host, port=INTERNAL_PORT)
        request = AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            timeout_ms=CALL_MS,
            voter_id=key.node_id,
            voter_directory_id=key.directory_id,
            listeners=(endpoint,),
        )
        self.asked_of(leader, leader.node.driver.handle, request)
        return False

    def _format_anew(self, machine: Machine) -> None:
        """The operator moves the directories away first."""
        machine.disk.rename(DATA, f"{DATA}.moved-away")
        format_node(
            self._config(machine.host),
            cluster_id=CLUSTER_ID,
            secret=SECRET,
            disk=machine.disk,
            new_uuid=lambda: self.rng.randbytes(16),
            protect=lambda _: None,
            incarnation=self.incarnation,
            first_voters=FirstVoters(later=machine.host in CONTROLLERS),
        )
