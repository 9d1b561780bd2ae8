"""The virtual year: load, an operator and faults on virtual time, one event after the other, and what must hold."""

from __future__ import annotations

import errno
import random
from collections import Counter
from collections.abc import Callable

from jepsen.sim.machine.disk_faults import Fail, Fault, Operation
from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler
from jepsen.soak.year import events as kinds
from jepsen.soak.year.authority import Authority
from jepsen.soak.year.damage import Damaged, damage_indexes
from jepsen.soak.year.events import Event, Events
from jepsen.soak.year.load import Load
from jepsen.soak.year.machine import PATHS, Machine, Process, directory_id
from jepsen.soak.year.model import PartitionModel, require
from jepsen.soak.year.moves import Mover, path_of
from jepsen.soak.year.reader import Reader
from jepsen.soak.year.topics import DAY_MS, HOUR_MS, KINDS, Kind
from quorumlog.errors import ApiError
from quorumlog.ids import Offset
from quorumlog_storage.audit.audit import audit
from quorumlog_storage.audit.directory_audit import Options
from quorumlog_storage.writer.directory_life import DirectoryState

PARTITIONS = 2
WRITTEN_SHARE = 0.6  # of the partitions, by one event of the load
SKEW_MS_MAX = HOUR_MS
DOWN_MS_MAX = 20 * 60_000
CUT_AFTER_MS_MAX = 3  # a kill or a power cut that comes while appends are under way
OFFLINE_MS_MAX = 20 * HOUR_MS
SETTING_MS_MAX = 3 * DAY_MS
DELETE_TIMEOUT_MS = 1_000
MOVES_MEET = 0.5  # probability that moves are begun just before a process ends or a directory fails
_CHANGES = {  # by an operator, for a while
    "retention.ms": str(DAY_MS),
    "internal.segment.bytes": "3000",
    "segment.ms": str(6 * HOUR_MS),
    "compression.type": "lz4",
    "min.cleanable.dirty.ratio": "0.1",
    "index.interval.bytes": "2000",
}


class Year:
    """counts: events that happened, by name. on_sample: called once a virtual day while a process runs."""

    def __init__(
        self,
        seed: int,
        on_sample: Callable[[Year], None] = lambda _: None,
        on_start: Callable[[Year], None] = lambda _: None,
        on_look: Callable[[Year], None] = lambda _: None,
    ) -> None:
        """on_start: called after each start but the first. on_look: before batches may leave the models, and often."""
        self.seed, self._on_sample, self._on_start, self._on_look = seed, on_sample, on_start, on_look
        self.compactions = 0  # of processes that have ended
        self.scheduler = Scheduler(seed)
        self.authority = Authority()
        self.machine = Machine(self.scheduler, self.authority)
        self.rng = self.scheduler.rng("year")
        self.load, self.reader = Load(self.scheduler.rng("load")), Reader()
        self.events = Events(self.scheduler.rng("events"))
        self.mover = Mover(self.machine, self.scheduler.rng("moves"))
        self.models: list[PartitionModel] = []
        self.counts: Counter[str] = Counter()
        self.damaged = Damaged()
        self.audits = 0
        self._topics = 0
        self._undo_fault: dict[str, Callable[[], None]] = {}
        self._lost_power = False
        self._in_failing: list[PartitionModel] = []  # what a sync that failed at the end of a process may have lost
        self._left_behind = False  # a topic was deleted while a directory was offline: only the next start can tell
        self._changed: set[str] = set()  # topics with a setting of the operator's; never iterated

    @property
    def now_ms(self) -> int:
        return self.scheduler.now_ns // NS_PER_MS

    def begin(self) -> None:
        self.machine.start()
        for kind in KINDS:
            self._create(kind)
        self._after_a_change()

    def run(self, days: float) -> None:
        """Raises Broken where a promise was not kept."""
        until_ms = int(days * DAY_MS)
        while (event := self.events.take()).at_ms <= until_ms:
            self.step(event)
        self._pass_to(until_ms)
        self._end()

    def step(self, event: Event) -> None:
        self._pass_to(event.at_ms)
        self.counts[event.name] += 1
        if event.act is not None:
            event.act()
        else:
            _ACTS[event.name](self)
        require(not self.machine.crashes, "process-crashed", "; ".join(self.machine.crashes))

    def drop(self) -> None:
        """The run is over: none of its code runs again."""
        if self.machine.process is not None:
            self.machine.process.loop.kill()
        killed_coroutines.empty()

    def _end(self) -> None:
        for path in list(self._undo_fault):
            self._return(path)
        self._restart(self._stop)
        self._look_at_all()
        self.machine.stop()
        self._audit()
        self.machine.start()

    def _pass_to(self, at_ms: int) -> None:
        if at_ms > self.now_ms:
            self.scheduler.run_until(at_ms * NS_PER_MS)
        self.reader.latest_wall_ms = max(self.reader.latest_wall_ms, self.machine.clock.wall_ms())

    # --- load and looks ---

    def _load(self) -> None:
        self._on_look(self)
        chosen = [model for model in self.models if self.rng.random() < WRITTEN_SHARE and self._is_led(model)]
        self.machine.running.run(self.load.write(self.machine.running, chosen))

    def _look(self) -> None:
        model = self.rng.choice(self.models)
        self._look_at(model)
        if model.batches and not model.kind.compacts:
            batch = self.rng.choice(model.batches)
            self.reader.search(self.machine.running, model, batch.wall_ms + self.rng.randrange(-1, 2))

    def _look_at_all(self) -> None:
        for model in self.models:
            self._look_at(model)

    def _look_at(self, model: PartitionModel) -> None:
        self._on_look(self)
        if self._is_led(model):
            if model.maybe:
                self.reader.settle(self.machine.running, model, lost_power=False)
            self.reader.look(self.machine.running, model)

    def _is_led(self, model: PartitionModel) -> bool:
        replica = self.machine.running.plane.registry.replicas.get((model.topic_id, model.index))
        return replica is not None and replica.core.is_leader and replica.is_usable and replica.log is not None

    def _sample(self) -> None:
        self._on_sample(self)

    # --- ends and starts ---

    def _stop(self) -> None:
        clean = self.machine.stop()
        excused = bool(self._undo_fault) or self._left_behind
        require(clean or excused, "unclean-stop", "the broker could not leave every directory in order")
        if clean:
            self._audit()

    def _kill(self) -> None:
        self._in_the_middle()
        self.machine.kill()

    def _cut_power(self) -> None:
        self._in_the_middle()
        self.damaged.power_is_lost(self.machine.disk)
        self.machine.cut_power(self.scheduler.rng(f"power/{self.machine.lives}"))
        self._lost_power = True

    def _in_the_middle(self) -> None:
        """Of appends to many partitions, which nobody answers any more."""
        running = self.machine.running
        chosen = [model for model in self.models if self._is_led(model)]
        running.loop.create_task(self.load.write(running, chosen))
        self.scheduler.run_for(self.rng.randrange(CUT_AFTER_MS_MAX * NS_PER_MS))

    def _restart(self, end: Callable[[], None]) -> None:
        self.compactions += self.machine.running.plane.cleaner.totals.rounds
        self._begin_moves()
        self.mover.process_ends()
        self._in_failing = [m for m in self.models if path_of(self.machine.running, m) in self._undo_fault]
        end()
        for path in list(self._undo_fault):
            self._undo_fault.pop(path)()
        if self.rng.random() < 0.5:
            self.damaged.forget_those_gone(self.machine.disk)
            damage_indexes(self.machine.disk, self.rng, self.damaged)
        self._pass_to(self.now_ms + self.rng.randrange(1, DOWN_MS_MAX))
        self.machine.start()
        self._on_start(self)
        self.load.after_a_start()
        self._after_a_change()
        self._lost_power = self._left_behind = False
        self._in_failing = []
        running = self.machine.running
        running.run(self.load.abort_open(running, [model for model in self.models if self._is_led(model)]))

    def _after_a_change(self) -> None:
        """Of leaderships: the models learn what is there."""
        for model in self.models:
            if self._is_led(model):
                lost = self._lost_power or model in self._in_failing
                self.reader.settle(self.machine.running, model, lost_power=lost)
                model.leaderships.append(self.now_ms)

    def _audit(self) -> None:
        """While no process runs."""
        compacted = frozenset(model.topic for model in self.models if model.kind.compacts)
        report = audit(self.machine.disk, list(PATHS), Options(compacted=compacted))
        self.audits += 1
        faults = [one for one in report.faults if not self.damaged.knows(self.machine.disk, one.path)]
        require(not faults, "audit", "; ".join(map(str, faults[:3])))

    # --- directories ---

    def _directory_fails(self) -> None:
        running = self.machine.running
        online = [path for path in PATHS if running.directories[path].life.is_online]
        if len(online) < len(PATHS) or self._undo_fault:
            return  # one at a time
        path = self.rng.choice(online)
        self._begin_moves()
        self._undo_fault[path] = self.machine.plans.add(_failing(path, self.rng))
        self.events.at(
            self.now_ms + self.rng.randrange(HOUR_MS, OFFLINE_MS_MAX),
            kinds.DIRECTORY_RETURNS,
            lambda: self._return(path),
        )

    def _return(self, path: str) -> None:
        undo = self._undo_fault.pop(path, None)
        if undo is None:
            return  # a restart came before
        undo()
        running = self.machine.running
        life = running.directories[path].life
        if life.state is not DirectoryState.FAILED:
            return
        lay_there = [model for model in self.models if path_of(running, model) == path]
        running.bring_back(path)
        self.counts["directories brought back"] += 1
        self.load.after_a_start()
        here = [model for model in lay_there if self._is_led(model)]  # a move may have taken some away since
        for model in here:
            self.reader.settle(running, model, lost_power=True)  # what a sync that failed has left is not on the disk
            model.leaderships.append(self.now_ms)
        running.run(self.load.abort_open(running, here))

    # --- an operator ---

    def _create(self, kind: Kind) -> None:
        self._topics += 1
        topic_id = (1_000 + self._topics).to_bytes(16, "big")
        topic = f"{kind.name}"
        places = self.rng.sample(range(len(PATHS)), PARTITIONS)
        self.authority.create_topic(topic, topic_id, kind.configs, [directory_id(place) for place in places])
        self.models += [PartitionModel(kind, topic, topic_id, index, self.now_ms) for index in range(PARTITIONS)]
        self.machine.running.await_leaders()

    def _topic_anew(self) -> None:
        """Deleted, and made again under its name."""
        kind = self.rng.choice(KINDS)
        gone = [model for model in self.models if model.kind is kind]
        self._left_behind = self._left_behind or len(self.machine.running.online) < len(PATHS)
        self.authority.delete_topic(gone[0].topic_id)
        for model in gone:
            self.models.remove(model)
            self.load.forget(model)
        self._changed.discard(kind.name)
        self._create(kind)
        for model in self.models[-PARTITIONS:]:
            model.leaderships.append(self.now_ms)

    def _setting(self) -> None:
        model = self.rng.choice(self.models)
        key = self.rng.choice(list(_CHANGES))
        if model.topic in self._changed or (key == "retention.ms" and model.kind.parsed.retention_ms < 0):
            return
        self._changed.add(model.topic)
        topic_id = model.topic_id
        self.authority.configure(model.topic, key, _CHANGES[key])
        if key == "retention.ms":
            for one in self._of(topic_id):
                one.retention_ms = int(_CHANGES[key])
        after_ms = self.rng.randrange(HOUR_MS, SETTING_MS_MAX)
        self.events.at(self.now_ms + after_ms, kinds.SETTING_BACK, lambda: self._setting_back(topic_id, key))

    def _setting_back(self, topic_id: bytes, key: str) -> None:
        models = self._of(topic_id)
        if not models:
            return  # deleted meanwhile
        kind = models[0].kind
        self.authority.configure(kind.name, key, kind.configs.get(key))
        self._changed.discard(kind.name)
        for model in models:
            self._look_at(model)
            model.take_policy()

    def _of(self, topic_id: bytes) -> list[PartitionModel]:
        return [model for model in self.models if model.topic_id == topic_id]

    def _delete_records(self) -> None:
        running = self.machine.running
        for model in self.models:
            if not model.kind.keeps_ms or not self._is_led(model) or model.maybe:
                continue
            old = [batch for batch in model.batches if batch.at_ms < self.now_ms - model.kind.keeps_ms]
            if not old:
                continue
            target = self.rng.randrange(old[-1].base, old[-1].end) + 1
            model.deleted_to = max(model.deleted_to, target)
            try:
                running.run(_delete(running, model, target))
            except ApiError:
                continue
            self.counts["records deleted"] += 1

    def _move(self) -> None:
        led = [model for model in self.models if self._is_led(model)]
        if led:
            self.mover.begin(self.rng.choice(led))

    def _take_a_move_back(self) -> None:
        led = [model for model in self.models if self._is_led(model)]
        if led:
            self.mover.take_back(self.rng.choice(led))

    def _begin_moves(self) -> None:
        """Half of the times, so that what comes next meets them."""
        led = [model for model in self.models if self._is_led(model)]
        if led and self.rng.random() < MOVES_MEET:
            self.mover.begin_some(led)

    # --- faults ---

    def _cleaner_dies(self) -> None:
        self.machine.fate.after_steps = self.rng.randrange(4)

    def _clock_jumps(self) -> None:
        self.machine.clock.wall_skew_ms = self.rng.randrange(-SKEW_MS_MAX, SKEW_MS_MAX)
        self._pass_to(self.now_ms)


async def _delete(process: Process, model: PartitionModel, target: Offset) -> None:
    await process.plane.delete_path.delete(model.topic_id, model.index, target, DELETE_TIMEOUT_MS)


def _failing(path: str, rng: random.Random) -> Callable[[Operation], Fault | None]:
    """Every change below `path` fails, or every look, too."""
    number = rng.choice((errno.EIO, errno.ENOSPC))
    changes = ("pwritev", "sync") if rng.random() < 0.5 else ("pwritev", "sync", "sync_directory", "rename", "unlink")

    def plan(operation: Operation) -> Fault | None:
        return Fail(number) if operation.kind in changes and operation.path.startswith(f"{path}/") else None

    return plan


_ACTS: dict[str, Callable[[Year], None]] = {
    kinds.LOAD: Year._load,
    kinds.LOOK: Year._look,
    kinds.LOOK_AT_ALL: Year._look_at_all,
    kinds.SAMPLE: Year._sample,
    kinds.STOP: lambda year: year._restart(year._stop),
    kinds.KILL: lambda year: year._restart(year._kill),
    kinds.POWER_CUT: lambda year: year._restart(year._cut_power),
    kinds.DIRECTORY_FAILS: Year._directory_fails,
    kinds.CLEANER_DIES: Year._cleaner_dies,
    kinds.CLOCK_JUMPS: Year._clock_jumps,
    kinds.TOPIC_ANEW: Year._topic_anew,
    kinds.SETTING: Year._setting,
    kinds.DELETE_RECORDS: Year._delete_records,
    kinds.MOVE: Year._move,
    kinds.MOVE_CANCELLED: Year._take_a_move_back,
}
