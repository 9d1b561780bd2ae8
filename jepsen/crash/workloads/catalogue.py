"""The workloads: what is prepared undisturbed, and the change that is then stopped at each of its calls.

All of them begin with the same two topics. `t` has several segments and a start in the middle of a batch; `u` is its
neighbour and must never notice anything. Payloads are fixed, so that two runs differ in what the crash left alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from jepsen.crash.check import check
from jepsen.crash.process import DATA
from jepsen.crash.workloads import (
    compacting,
    formatting,
    importing,
    moving,
    opening,
    quorum,
    rebuilding,
    recovering,
    retention,
    snapshots,
    transactions,
)
from jepsen.crash.workloads.reports import describe_directories
from jepsen.crash.world import BATCH_RECORDS, World
from quorumlog.ids import Offset
from quorumlog_storage.directory.directory import CLEAN_SHUTDOWN
from quorumlog_storage.files.names import LOG_SUFFIX, cut_suffix, log_name, partition_directory
from quorumlog_storage.rules.epochs import CHECKPOINT_NAME

T, U = "t", "u"
BATCHES = 8
END = BATCHES * BATCH_RECORDS
START = 7  # inside the third batch
SEGMENT = 9  # where the second segment begins
METADATA_BATCHES = 5
TORN = b"\xff" * 70  # no batch


def _nothing(_world: World, _rng: random.Random | None = None) -> None:
    pass


def _more(world: World) -> None:
    """What a later leadership acknowledges, and what it writes last, without a sync."""
    world.append(dict.fromkeys(world.known, 2))
    world.lead()
    world.commit(1)
    for topic in world.known:
        world.append_unsynced(topic, 2)


@dataclass(frozen=True, slots=True)
class Workload:
    """rng: of the seed, for what the preparation may vary.

    fills: with the two topics. reopen, check: of the next process. goes_on: acknowledges more, after that.
    """

    name: str
    change: Callable[[World], object]
    prepare: Callable[[World, random.Random], object] = _nothing
    fills: bool = True
    reopen: Callable[[World], object] = World.open
    check: Callable[[World], object] = check
    goes_on: Callable[[World], object] = _more

    def prepared(self, seed: int) -> World:
        world = World()
        if self.fills:
            _fill(world)
        self.prepare(world, random.Random(f"{self.name} {seed}"))
        return world


def _fill(world: World) -> None:
    world.format()
    world.know(T, 1)
    world.know(U, 2)
    world.open()
    world.append({U: 1})
    world.append({T: BATCHES}, batches_a_job=3)
    assert world.log(T).segment_bases[1] == SEGMENT
    world.raise_start(U, 1)
    world.raise_start(T, START)
    world.checkpoint({T: END - 2, U: 2})
    world.lead()
    world.commit(METADATA_BATCHES)
    world.vote(2)


# --- appends ---


def append(world: World) -> None:
    world.append({T: 1})
    world.append({U: 1, T: 1})
    world.append({T: 2})


def roll(world: World) -> None:
    world.append({T: 7}, batches_a_job=7)
    world.append({T: 4, U: 2})
    world.append({T: 1})  # nothing but its records: what the roll left unsynced stays so
    world.checkpoint({T: END, U: 3})


def new_epoch(world: World) -> None:
    world.begin_epoch(T)
    world.append({T: 1})
    world.begin_epoch(T)
    world.truncate(T, world.log(T).end_offset)  # a follower forgets a leadership without records
    world.append({T: 1})


# --- what is removed ---


def truncate_to(offset: Offset) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.truncate(T, offset)
        world.epoch += 1
        world.append({T: 1})

    return change


def raise_start_to(offset: Offset) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.raise_start(T, offset)
        world.append({T: 1})
        world.checkpoint({T: END, U: 2})

    return change


def restart_at(offset: Offset) -> Callable[[World], None]:
    return lambda world: world.restart_at(T, offset)


def after_a_restart(world: World, _: random.Random) -> None:
    world.restart_at(T, 31)
    world.checkpoint({T: 31, U: 2})


def copy_inside(world: World) -> None:
    world.epoch += 1
    world.begin_inside(T)
    world.append({T: 1})


def checkpoint(world: World) -> None:
    world.append({T: 1})
    world.checkpoint({T: END, U: 3})
    world.raise_start(T, SEGMENT)
    world.checkpoint({T: END + 1, U: 3})
    world.append({U: 1})  # of another log: what the checkpoint left unsynced stays so


# --- whole partitions ---


def create(world: World) -> None:
    world.create("v", 3)
    world.append({"v": 1, T: 1})


def remake(world: World) -> None:
    name = world.delete(T, successor=4)
    world.create(T, 4)
    world.append({T: 2})
    world.free(name, step_bytes=300)
    world.append({T: 1})


def set_aside(world: World) -> None:
    world.set_aside(T)


def stop(world: World) -> None:
    world.append({T: 1})
    world.stop()


# --- starts ---


def start(world: World) -> None:
    world.open()


def killed(world: World, _: random.Random) -> None:
    world.append_unsynced(T, 2)
    world.end(None)


def power_cut(world: World, rng: random.Random) -> None:
    world.append_unsynced(T, 4)
    world.append_unsynced(U, 1)
    world.end(rng)


def stopped(world: World, _: random.Random) -> None:
    world.append({T: 2})
    world.stop()
    world.end(None)


def power_cut_in_a_deletion(world: World, rng: random.Random) -> None:
    world.delete(T, successor=4)
    world.create("v", 3)
    world.append_unsynced("v", 1)
    world.end(rng)


def without_caches(world: World, rng: random.Random) -> None:
    """Whatever is made from the log is missing, torn or stale; and the last segment is torn."""
    world.append_unsynced(T, 3)
    world.end(rng)
    disk, path = world.disk, f"{DATA}/{partition_directory(T, 0)}"
    for name in disk.list(path):
        if name.endswith((".index", ".snapshot")):
            disk.open(f"{path}/{name}").truncate(rng.choice((0, 5)))
    disk.open(f"{path}/{900:020d}.index", create=True)  # of no segment
    disk.open(f"{path}/{900:020d}.snapshot", create=True)  # of no segment
    disk.open(f"{path}/{CHECKPOINT_NAME}.tmp", create=True)  # of an interrupted write
    disk.unlink(f"{path}/{CHECKPOINT_NAME}")
    disk.sync_directory(path)


def damaged(world: World, rng: random.Random) -> None:
    """A torn end that an interrupted recovery has copied already, and a segment that begins where no log ends."""
    stopped(world, rng)
    disk, path = world.disk, f"{DATA}/{partition_directory(T, 0)}"
    last = max(name for name in disk.list(path) if name.endswith(LOG_SUFFIX))
    size = disk.open(f"{path}/{last}").size()
    for name, position in ((last, size), (f"{last}{cut_suffix(size, 0)}", 0), (log_name(900), 0)):
        file = disk.open(f"{path}/{name}", create=True)
        file.pwritev([TORN], position)
        file.sync()
    disk.sync_directory(path)
    disk.unlink(f"{DATA}/{CLEAN_SHUTDOWN}")
    disk.sync_directory(DATA)


# --- reads ---


def freshly_started(world: World, rng: random.Random) -> None:
    stopped(world, rng)
    world.open()


def read_cold(world: World) -> None:
    """From segments whose files and indexes are not open yet, and by an offset in the middle."""
    log = world.log(T)
    for offset in range(START, log.end_offset):
        assert log.read(offset, 1, upper_bound=log.end_offset)
    describe_directories(world)


def first_start(world: World, _: random.Random) -> None:
    world.format()
    world.know(T, 1)


def half_made(world: World, _: random.Random) -> None:
    """What an attempt to create a partition leaves in a process that goes on: a directory without a topic id."""
    path = f"{DATA}/{partition_directory('v', 0)}"
    world.disk.make_directory(path)
    world.disk.open(f"{path}/{log_name(0)}", create=True)


def _command(
    name: str,
    change: Callable[[World], object],
    reopen: Callable[[World], object],
    check: Callable[[World], object],
    prepare: Callable[[World, random.Random], object] = _nothing,
) -> Workload:
    """A command of an operator, on directories without records."""
    return Workload(name, change, prepare, False, reopen, check, goes_on=_nothing)


_FORMAT = (formatting.format_and_open, formatting.reopen, formatting.check)
_FIRST_VOTER = (formatting.format_first_voter, formatting.reopen_first_voter, formatting.check)
_RECOVER = (recovering.recover_survivor, recovering.reopen_recovered, recovering.check_recovered)
_COMPACT = (compacting.start, compacting.check)
_IMPORT = (True, World.open, importing.check_import, importing.go_on)
_LOOK_UP = (True, World.open, rebuilding.check_look_ups, rebuilding.go_on)
_OPEN_WHOLE = (True, rebuilding.open_whole, rebuilding.check_look_ups, rebuilding.go_on)
_ADOPT = (recovering.adopt_broker, recovering.reopen_adopted, recovering.check_adopted)

WORKLOADS = (
    Workload("append", append),
    Workload("roll", roll),
    Workload("new epoch", new_epoch),
    *[Workload(f"truncate to {at}", truncate_to(at)) for at in (START, START + 1, SEGMENT + 1, 15, END - 1)],
    *[Workload(f"raise start to {at}", raise_start_to(at)) for at in (START + 1, SEGMENT, END)],
    *[Workload(f"expire below {at}", retention.expire_below(T, U, at)) for at in (SEGMENT, END - 2, END)],
    Workload("free what was cut", retention.free_what_was_cut(T, SEGMENT + 1)),
    Workload("start with retired segments", retention.start_and_free, retention.left_retired(T, END - 2)),
    Workload("start above whole segments", retention.start_above(T, U), retention.left_noted(T, END - 2)),
    *[Workload(*row, False, check=transactions.check, goes_on=transactions.go_on) for row in transactions.ROWS],
    Workload("restart at the end", restart_at(END)),
    Workload("restart after the end", restart_at(31)),
    Workload("copy inside a batch", copy_inside, after_a_restart),
    Workload("checkpoint", checkpoint),
    _command("compact", compacting.compact, *_COMPACT, compacting.filled),
    _command("start after half a compaction", compacting.start, *_COMPACT, compacting.half_swapped),
    Workload("import", importing.copy, importing.begin, *_IMPORT),
    Workload("import after an interruption", importing.copy, importing.half_done, *_IMPORT),
    *[Workload(*row, False, moving.start, moving.check, moving.go_on) for row in moving.ROWS],
    Workload("create", create),
    Workload("create what is half made", create, half_made),
    Workload("delete and make anew", remake),
    Workload("set aside", set_aside),
    Workload("stop", stop),
    Workload("first start", start, first_start, fills=False),
    Workload("start after a kill", start, killed),
    Workload("start after a power cut", start, power_cut),
    Workload("start after a stop", start, stopped),
    Workload("start after a deletion", start, power_cut_in_a_deletion),
    Workload("start without caches", start, without_caches),
    Workload("start with a torn end and a foreign segment", start, damaged),
    Workload("open beside after a power cut", opening.open_beside, power_cut),
    Workload("open beside without caches", opening.open_beside, without_caches),
    Workload("open beside in one turn", opening.open_in_one_turn, killed),
    Workload("open beside above whole segments", opening.open_and_checkpoint(T, U), opening.left_noted(T, END - 2)),
    Workload("delete while it is opened", opening.open_and_delete(T), killed),
    Workload("look up with wrong indexes", rebuilding.look_up, rebuilding.wrong, *_LOOK_UP),
    Workload("check wrong indexes", rebuilding.check_in_use, rebuilding.wrong_above_a_start, *_LOOK_UP),
    Workload("start with broken indexes", rebuilding.open_and_look_up, rebuilding.broken, *_OPEN_WHOLE),
    Workload("renew votes", quorum.renew_votes, quorum.unreadable_votes, reopen=quorum.open_after_a_renewal),
    Workload("read", read_cold, freshly_started),
    Workload("metadata", quorum.metadata),
    Workload("truncate metadata", quorum.truncate_metadata),
    Workload("stop after a commit", quorum.stop_metadata),
    Workload("start after a lost checkpoint", start, quorum.metadata_power_cut),
    Workload("take snapshots", snapshots.take, check=snapshots.check_all),
    Workload("retain one snapshot", snapshots.retain, snapshots.two_snapshots, check=snapshots.check_all),
    Workload("serve a snapshot", snapshots.serve, snapshots.two_snapshots, check=snapshots.check_all),
    Workload("start with a damaged snapshot", start, snapshots.damaged, check=snapshots.check_all),
    Workload("install a snapshot", snapshots.install, snapshots.two_snapshots, check=snapshots.check_all),
    Workload("start behind a snapshot", start, snapshots.left_empty, check=snapshots.check_all),
    Workload("start before the log is cut", start, snapshots.left_half_way, check=snapshots.check_all),
    _command("format", *_FORMAT),
    _command("format again", *_FORMAT, formatting.half_formatted),
    _command("open what is formatted", *_FORMAT, formatting.formatted_before),
    _command("format a first voter", *_FIRST_VOTER),
    _command("recover", *_RECOVER, recovering.survivor),
    _command("recover after an interruption", *_RECOVER, recovering.half_recovered),
    _command("adopt", *_ADOPT, recovering.survivor),
)
