"""One run of the sweep: a workload, stopped at one call by one fault, the next process, and the one after it.

After each start it is told what that has made of the crash, and the auditor reads the files that it leaves.
"""

from __future__ import annotations

import random
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jepsen.crash.check import Violation, check_while_changing, image_hash, require
from jepsen.crash.faults import CRASHES, DONE, SURVIVES, Fault, Variant, applicable, variants
from jepsen.crash.process import DATA
from jepsen.crash.struck_disk import Call, ProcessEnded, Strike
from jepsen.crash.workloads.catalogue import WORKLOADS, Workload
from jepsen.crash.workloads.reports import ToldAsError
from jepsen.crash.world import World
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY
from quorumlog_server.directories.directories import DirectoryProblem
from quorumlog_storage.audit.directory_audit import audit_directory
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log_errors import LogClosed, LogUnreadable
from quorumlog_storage.writer.directory_life import DirectoryOffline


def recovered_state(world: World) -> str:
    """Each log of the process that has just started: its range, its epochs, and what recovery did to it."""
    return "; ".join(f"{topic} {_state_of(log)}" for topic, log in sorted(world.process.all_logs().items()))


def _state_of(log: object) -> str:
    from quorumlog_storage.log.log import Log

    assert isinstance(log, Log)
    did = "cut" if log.recovery.cut_bytes else "scanned" if log.recovery.scanned_bytes else "trusted"
    epochs = ",".join(f"{entry.epoch}@{entry.start_offset}" for entry in log.epochs.entries)
    return f"[{log.start_offset}, {log.end_offset}) of {epochs or 'no epoch'} {did}"


def require_clean_audit(world: World) -> None:
    """The files of the logs that a process has just opened are without a fault. Raises Violation."""
    if METADATA_DIRECTORY not in world.process.all_logs():
        return  # of a workload without the usual directory
    report = audit_directory(world.disk, DATA)
    faults = [*report.findings.faults, *(fault for log in report.logs.values() for fault in log.findings.faults)]
    require(not faults, "audit", "; ".join(map(str, faults[:3])))


UNEXPECTED = "unexpected exception"  # what is broken where no promise is named
HANG_LIMIT_S = 30.0  # of real time, for a change to end or to hang
BY_NAME = {workload.name: workload for workload in WORKLOADS}

_TOLD = (DiskError, DirectoryOffline, DirectoryProblem, LogUnreadable, ToldAsError)  # how an error may be told


@dataclass(frozen=True, slots=True)
class Case:
    """site: as text. at: the number of the call in the workload's change."""

    workload: str
    at: int
    site: str
    fault: Fault
    seed: int
    variant: Variant

    @property
    def replay(self) -> str:
        chosen = f"--site {self.site} --fault {self.fault.value} --variant {self.variant.value} --seed {self.seed}"
        return f"./dev crash-sweep {chosen} --workload '{self.workload}' --call {self.at}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """images: hashes of what each start was given. broken: the name of the promise that
    does not hold, or `UNEXPECTED`, and the evidence; "" if all hold. recovered: what the first start made of it."""

    case: Case
    images: tuple[bytes, ...]
    broken: str = ""
    recovered: str = ""


def cases_of(workload: Workload, seed: int) -> Iterator[Case]:
    """Every call of the undisturbed change, with every fault that it can meet."""
    for call in calls_of(workload, seed):
        for fault in applicable(call.site):
            for variant in variants(call.site, fault):
                yield Case(workload.name, call.number, str(call.site), fault, seed, variant)


def calls_of(workload: Workload, seed: int) -> list[Call]:
    """The calls of the change where nothing fails."""
    world = workload.prepared(seed)
    world.process.disk.watch()
    workload.change(world)
    return world.process.disk.calls


def run(case: Case) -> Outcome:
    """Never raises: whatever goes wrong is what is broken."""
    images: list[bytes] = []
    try:
        recovered = _run(case, images)
    except Violation as error:
        return Outcome(case, tuple(images), str(error))
    except (Exception, ProcessEnded) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{UNEXPECTED}: {type(error).__name__}: {error} ({where.filename.rpartition('/')[2]}:{where.lineno})"
        return Outcome(case, tuple(images), text)
    return Outcome(case, tuple(images), recovered=recovered)


def _run(case: Case, images: list[bytes]) -> str:
    """Returns what the first start has recovered."""
    workload = BY_NAME[case.workload]
    rng = random.Random(f"{case.workload} {case.at} {case.fault.value} {case.variant.value} {case.seed}")
    world = workload.prepared(case.seed)
    disk = world.process.disk
    disk.watch(case.at, Strike(case.fault, DONE.get(case.variant, 1.0)))
    if case.fault is Fault.HANG:
        _hang(world, workload.change)
    else:
        _strike(world, workload.change, case.fault)
    require(disk.struck is not None and str(disk.struck.site) == case.site, "determinism", f"{disk.struck}")
    disk.unwatch()
    power_fails = case.fault is Fault.POWER_CUT or (case.fault not in CRASHES and rng.random() < 0.5)
    world.end(rng if power_fails else None, SURVIVES.get(case.variant))
    images.append(image_hash(world.disk))
    workload.reopen(world)
    workload.check(world)
    recovered = recovered_state(world)
    workload.goes_on(world)
    world.end(rng)
    images.append(image_hash(world.disk))
    workload.reopen(world)
    workload.check(world)
    require_clean_audit(world)
    return recovered


def _strike(world: World, change: Callable[[World], object], fault: Fault) -> None:
    try:
        change(world)
    except ProcessEnded:
        require(fault in CRASHES, "ended", "an error ended the process")
    except _TOLD as error:
        require(fault not in CRASHES, "crash", f"told as {error}")
        _check_failed(world, error)
    else:  # too many open files may be waited out; what is acknowledged must hold all the same
        require(fault is Fault.EMFILE, "swallowed", f"{world.process.disk.struck}: nobody was told")


def _check_failed(world: World, error: Exception) -> None:
    """What a failed call in a turn does: the directory is failed for good, and no log takes anything more.

    Outside of a turn, at the start or in a read, the error is only told. So it is where a log could not be read.
    """
    process = world.process
    process.disk.unwatch()
    if not isinstance(error, DirectoryOffline) or not process.logs:
        return
    require(process.generation.failure is not None, "offline", f"{error}: the directory takes more")
    world.epoch += 1  # else the sweep itself would assign an (offset, epoch) twice
    for topic in process.logs:
        try:
            world.append({topic: 1})
        except (DirectoryOffline, LogClosed):
            continue
        require(False, "offline", f"{topic} took an append after {error}")


def _hang(world: World, change: Callable[[World], object]) -> None:
    """The writer's thread never returns from its call. Readers go on; nothing more is acknowledged."""
    disk = world.process.disk
    told: list[BaseException] = []

    def work() -> None:
        try:
            change(world)
        except BaseException as error:
            told.append(error)
            disk.hung.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    hung = disk.hung.wait(HANG_LIMIT_S)
    try:
        require(hung and not told, "hang", f"the change did not hang: {told}")
        for topic, log in world.process.all_logs().items():
            if log.is_abandoned:
                continue  # it leaves, and its readers are refused
            check_while_changing(log, world.expected[topic])
    finally:
        disk.end()
        thread.join(HANG_LIMIT_S)
    require(not thread.is_alive(), "hang", "the change goes on")
