"""The workloads of transactions: markers, segments that roll, truncated decisions, lost and wrong indexes.

One log, `x`, and three producers. A script is a row of steps: `a` is a record of producer a, `a+` commits what it has
open, `a-` aborts it. What a log must say of its transactions is worked out anew from the steps of the records that it
holds, and of those that its start has passed.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from jepsen.crash import check as records
from jepsen.crash.check import READ_BYTES, read_all, require
from jepsen.crash.expected import Expected, payload
from jepsen.crash.process import DATA
from jepsen.crash.world import FIRST_MS, World
from quorumlog.ids import Offset
from quorumlog.records import Record, encode_batch, headers
from quorumlog.records.control import EndTxnMarker, control_batch
from quorumlog_storage.files.names import partition_directory, transaction_index_name
from quorumlog_storage.log.log import Log
from quorumlog_storage.producers.transactions import NEVER
from quorumlog_storage.segment.batch import StoredBatch, stamped_batches
from quorumlog_storage.segment.transaction_index import AbortedTransaction, encode_entries
from quorumlog_storage.writer.writer import AppendJob

X = "x"
PRODUCERS = {"a": 11, "b": 12, "c": 13}
SCRIPTS = ("a b a b- b a", "c b+ a c a- c", "a c b b a+ c-", "a b a")
END = 21  # of these; a and b are open there


# --- what is written ---


def write(world: World, script: str) -> None:
    """One turn, two batches a job."""
    log, made = world.log(X), _batches(world, script)
    jobs = [AppendJob(log, made[at : at + 2]) for at in range(0, len(made), 2)]
    world.process.turn(jobs)
    for batch in made:
        world.expected[X].acknowledged(batch.base_offset, 1, batch.leader_epoch)


def _batches(world: World, script: str) -> list[StoredBatch]:
    """Noted as sent."""
    expected, at, made = world.expected[X], world.log(X).end_offset, []
    for step in script.split():
        made.append(_batch(expected.tag, at, world.epoch, step))
        expected.sent(at, 1, world.epoch)
        expected.steps[at, world.epoch] = step
        at += 1
    return made


def _batch(tag: str, offset: Offset, epoch: int, step: str) -> StoredBatch:
    """The sequences of a producer are its offsets."""
    producer = PRODUCERS[step[0]]
    if step[1:]:
        marker = EndTxnMarker(committed=step[1:] == "+", coordinator_epoch=1)
        data = control_batch(
            [marker], base_offset=0, timestamp_ms=FIRST_MS + offset, producer_id=producer, producer_epoch=0
        )
    else:
        record = Record(0, FIRST_MS + offset, None, payload(tag, offset, epoch), ())
        data = encode_batch(
            [record], producer_id=producer, producer_epoch=0, base_sequence=offset, transactional=True
        )  # fmt: skip
    (stored,) = stamped_batches(data, headers(data), offset, epoch)
    return stored


# --- the workloads ---


def filled(world: World, _rng: random.Random) -> None:
    world.format()
    world.know(X, 3)
    world.open()
    for script in SCRIPTS:
        write(world, script)
    assert world.log(X).end_offset == END and len(world.log(X).segment_bases) > 2
    world.checkpoint({X: END - 6})


def go_on(world: World) -> None:
    """Decide, and begin anew; roll; leave markers unsynced."""
    write(world, "a b c- a- b+ a c b")
    world.checkpoint({X: world.log(X).end_offset})
    world.log(X).append(_batches(world, "c+ a- b"))


def proceed(world: World) -> None:
    """Appends over several segments with a checkpoint and a clean stop."""
    write(world, "a- b+ c c a c-")
    write(world, "b a+ b- b c")
    world.checkpoint({X: END + 6})
    write(world, "c+ a b- a-")
    world.stop()


def decide_otherwise(offset: Offset) -> Callable[[World], None]:
    """A truncation takes decisions back, and the next leader decides the opposite."""

    def change(world: World) -> None:
        world.truncate(X, offset)
        world.epoch += 1
        write(world, "c+ b- a- a c b" if offset > 9 else "c a+ c- b a")
        world.checkpoint({X: offset})

    return change


def expire(world: World) -> None:
    """Transactions that began in segments that leave end in those that stay."""
    world.expire(X, END - 6)
    write(world, "b- a- c")
    world.free_retired(100)
    world.checkpoint({X: END})


def unsynced_decisions(world: World, rng: random.Random) -> None:
    filled(world, rng)
    world.log(X).append(_batches(world, "b- a c a+ c- a b b a- b+"))
    world.end(rng if rng.random() < 0.7 else None)


def left_noted(world: World, rng: random.Random) -> None:
    """The start of retention is noted, and the process ends before any segment is retired."""
    filled(world, rng)
    world.note_expired(X, END - 6)
    world.end(rng if rng.random() < 0.5 else None)


def start_above(world: World) -> None:
    world.open()
    world.free_retired(200)
    write(world, "b- a-")
    world.checkpoint({X: END})


def wrong_indexes(world: World, rng: random.Random) -> None:
    """Of a clean stop: the first one is missing, the second one torn, and the last segment has one of nothing."""
    filled(world, rng)
    bases = world.log(X).segment_bases
    world.stop()
    world.end(None)
    disk, path = world.disk, f"{DATA}/{partition_directory(X, 0)}"
    names = [f"{path}/{transaction_index_name(base)}" for base in bases]
    there = [name for name in names[:-1] if disk.exists(name)]
    assert len(there) > 1 and not disk.exists(names[-1])
    disk.unlink(there[0])
    disk.open(there[1]).truncate(20)
    foreign = disk.open(names[-1], create=True)
    foreign.pwritev([encode_entries([AbortedTransaction(PRODUCERS["a"], END - 3, END - 1, END - 3)])], 0)
    disk.sync_directory(path)


def start_and_stop(world: World) -> None:
    world.open()
    world.stop()


ROWS: tuple[tuple[str, Callable[[World], object], Callable[[World, random.Random], object]], ...] = (
    ("transactions", proceed, filled),
    ("truncate to 9 and decide otherwise", decide_otherwise(9), filled),
    ("truncate to 15 and decide otherwise", decide_otherwise(15), filled),
    ("expire transactions", expire, filled),
    ("start after unsynced decisions", World.open, unsynced_decisions),
    ("start above whole transactions", start_above, left_noted),
    ("start with wrong transaction indexes", start_and_stop, wrong_indexes),
)  # name, change, preparation


# --- what must hold ---


def check(world: World) -> None:
    """The promises of every log; and the last stable offset, the aborted list and the readers agree with a replay."""
    records.check(world)
    log, expected = world.log(X), world.expected[X]
    steps = _steps(log, expected)
    first, aborted, hidden = _replayed(steps)
    unstable = log.unstable.first(log.end_offset)
    require(unstable == first, "last stable offset", f"{log.path} says {unstable}, its records say {first}: {steps}")
    _check_indexes(log, aborted)
    _check_readers(log, min(first, log.end_offset), steps, hidden)
    assert log.producers is not None
    for name, producer in PRODUCERS.items():
        last = max((at for at in steps if steps[at] == name and at >= log.start_offset), default=None)
        entry = log.producers.entry(producer)
        found = None if entry is None else entry.last_sequence
        require(last in (None, found), "producer", f"{log.path}: the last record of {name} is {last}, told is {found}")


def _steps(log: Log, expected: Expected) -> dict[Offset, str]:
    """By offset, also before the log's start: what retention takes was never truncated, so it has one epoch."""
    gone = {at: step for (at, _), step in sorted(expected.steps.items()) if at < log.start_offset}
    held = {at: expected.steps[at, epoch] for at, epoch in read_all(log, expected)}
    return gone | held


def _replayed(steps: dict[Offset, str]) -> tuple[Offset, list[AbortedTransaction], set[Offset]]:
    """(first unstable offset where all is replicated, aborted transactions, offsets of their records)."""
    open_at: dict[str, list[Offset]] = {}
    aborted: list[AbortedTransaction] = []
    hidden: set[Offset] = set()
    for at, step in steps.items():
        if not step[1:]:
            open_at.setdefault(step, []).append(at)
            continue
        offsets = open_at.pop(step[0], [])
        if offsets and step[1:] == "-":
            stable = min([held[0] for held in open_at.values()], default=at + 1)
            aborted.append(AbortedTransaction(PRODUCERS[step[0]], offsets[0], at, stable))
            hidden.update(offsets)
    return min([held[0] for held in open_at.values()], default=NEVER), aborted, hidden


def _check_indexes(log: Log, aborted: list[AbortedTransaction]) -> None:
    ends = (*log.segment_bases[1:], log.end_offset)
    for segment, end in zip(log.view.segments, ends, strict=True):
        wanted = [one for one in aborted if segment.base_offset <= one.last_offset < end]
        found = segment.transactions.entries()
        require(found == wanted, "aborted list", f"{segment.transactions.path} holds {found}, and not {wanted}")


def _check_readers(log: Log, stable: Offset, steps: dict[Offset, str], hidden: set[Offset]) -> None:
    """A read_committed consumer, wherever it begins, gets the records of what was committed and no others."""
    for offset in range(log.start_offset, stable):
        part = log.read_part(offset, READ_BYTES, upper_bound=stable, committed=True)
        got, end = [], offset
        for header in headers(part.data):
            end = header.next_offset
            is_aborted = any(
                one.producer_id == header.producer_id and one.first_offset <= header.base_offset < one.last_offset
                for one in part.aborted
            )
            if not header.is_control and not is_aborted:
                got.append(header.base_offset)
        wanted = [at for at in range(offset, end) if not steps[at][1:] and at not in hidden]
        require(end > offset and got == wanted, "committed records", f"{log.path} from {offset}: {got}, not {wanted}")
