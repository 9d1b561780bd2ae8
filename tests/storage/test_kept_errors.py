"""Errors that are kept hold no frames of those who met them: nothing stays open in a directory that has failed."""

from __future__ import annotations

import ast
import errno
import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from storage_samples import SMALL, append, batch

import quorumlog_storage
from jepsen.sim.machine.disk_faults import Fail
from jepsen.soak.counting_disk import CountingDisk
from quorumlog_storage.edge.worker import SyncPool
from quorumlog_storage.files.disk import DiskError, FileMissing
from quorumlog_storage.files.eviction import LogResources
from quorumlog_storage.files.file_handle import let_go_all, open_below
from quorumlog_storage.files.kept_errors import kept, release_frames
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogClosed, LogUnreadable
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.writer.worker import run_read
from quorumlog_storage.writer.writer import AppendJob, CallJob, DirectoryWriter, Job, Outcome, RunSyncs, one_by_one

LOGS = 6


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """A node collects seldom."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class World:
    """Logs of one directory, whose disk counts the open files."""

    def __init__(self) -> None:
        self.disk = CountingDisk()
        self.disk.resources = LogResources()
        self.disk.make_directory("/data")
        self.disk.sync_directory("/")
        self.logs = [self._log(number) for number in range(LOGS)]
        for log in self.logs:
            append(log, [b"first"])
            log.sync()

    def _log(self, number: int) -> Log:
        self.disk.make_directory(f"/data/t-{number}")
        return Log.open(self.disk, f"/data/t-{number}", SMALL, recovery_point=0, clean=False)

    def appends(self) -> list[Job]:
        return [AppendJob(log, [batch(log.end_offset, [b"next"])]) for log in self.logs]

    def fail(self, *kinds: str, name: str = "") -> None:
        self.disk.faults = lambda one: Fail(errno.EIO) if one.kind in kinds and name in one.path else None

    def let_go(self) -> int:
        """As a directory does that has failed. Returns how many files are open all the same."""
        let_go_all(open_below(self.disk, "/data"))
        return self.disk.open_files


def one_by_one_to_the_end(syncs: object) -> list[Exception | None]:
    return list(one_by_one(syncs))  # type: ignore[arg-type]


def on_threads(syncs: object) -> list[Exception | None]:
    pool = SyncPool("/data")
    try:
        return pool.run(syncs)  # type: ignore[arg-type]
    finally:
        pool.close()


@pytest.mark.parametrize("run", [one_by_one, one_by_one_to_the_end, on_threads])
def test_when_the_syncs_of_several_logs_fail_in_one_turn_nothing_stays_open(run: RunSyncs) -> None:
    world = World()
    writer = DirectoryWriter("/data")
    written = writer.write_phase(world.appends())
    assert not [outcome.error for outcome in written if outcome.error]
    world.fail("sync")
    outcomes = writer.sync_phase(run)
    assert len([outcome for outcome in outcomes if outcome.error]) == LOGS
    failed = [log for log in world.logs if log.change_failure is not None]
    assert len(failed) == (1 if run is one_by_one else LOGS)
    assert world.let_go() == 0


def test_a_write_that_fails_leaves_nothing_open_though_its_answer_is_still_known() -> None:
    world = World()
    writer = DirectoryWriter("/data")
    world.fail("pwritev")
    written = writer.write_phase(world.appends())
    outcomes = writer.sync_phase()
    assert all(outcome.error for outcome in (*written, *outcomes))
    assert world.let_go() == 0


FAILING: list[tuple[str, Callable[[World], object]]] = [
    ("open", lambda world: world.logs[0].read(0, 100, upper_bound=1)),
    ("pread", lambda world: world.logs[0].read(0, 100, upper_bound=1)),
    ("pread", lambda world: Log.open(world.disk, "/data/t-0", SMALL, recovery_point=0, clean=False)),
    ("size", lambda world: Log.open(world.disk, "/data/t-0", SMALL, recovery_point=0, clean=True)),
    ("truncate", lambda world: world.logs[0].truncate_to(0)),
    ("sync", lambda world: append(world.logs[0], [b"x"]) or world.logs[0].sync()),  # type: ignore[func-returns-value]
    ("", lambda world: _meets_a_bug(world)),
]


def _meets_a_bug(world: World) -> None:
    file = world.disk.open("/data/t-0/00000000000000000000.log")
    raise ValueError(f"a bug of ours that leaves {file.path} open")


@pytest.mark.parametrize(("kind", "call"), FAILING, ids=[str(number) for number in range(len(FAILING))])
@pytest.mark.parametrize("where", ["job", "beside", "read"])
def test_a_call_that_fails_leaves_nothing_open(kind: str, call: Callable[[World], object], where: str) -> None:
    world = World()
    if where == "read":
        let_go_and_open_again(world)
    writer = DirectoryWriter("/data")
    world.fail(kind)
    outcome: Outcome
    if where == "job":
        (outcome,) = writer.write_phase([CallJob(lambda: call(world), world.logs)])
        writer.sync_phase()
    elif where == "beside":
        outcome = writer.attempt(lambda: call(world))
    else:
        outcome = run_read(lambda: call(world))
    assert outcome.error is not None or kind == "open"
    assert world.let_go() == 0


def let_go_and_open_again(world: World) -> None:
    for log in world.logs:
        log.close()
        log.abandon()
    world.logs = [Log.open(world.disk, log.path, SMALL, recovery_point=0, clean=True) for log in world.logs]


def test_a_log_that_cannot_be_read_keeps_the_reason_and_no_file() -> None:
    world = World()
    log = world.logs[0]
    world.fail("pread")
    for _ in range(3):
        with pytest.raises(LogUnreadable):
            log.read(0, 100, upper_bound=1)
    assert isinstance(log.failure, DiskError) and log.failure.errno == errno.EIO
    assert world.let_go() == 0


# --- the twin ---


class Held:
    """In the place of an open file."""


def met(error: Exception) -> tuple[Exception, weakref.ref[Held]]:
    """`error` after it has passed a frame that holds something, and the reference to that."""
    held = Held()
    seen = weakref.ref(held)

    def meet(held: Held) -> None:
        try:
            raise OSError(errno.EIO, "the kernel's")
        except OSError as cause:
            raise error from cause

    try:
        meet(held)
    except Exception as caught:
        return caught, seen
    raise AssertionError("not reached")


ERRORS: list[Exception] = [
    DiskError("/data/a-0", "sync", errno.EIO, "broken"),
    FileMissing("/data/a-0", "open"),
    CorruptBatch("/data/a-0", 17, "a wrong checksum"),
    LogClosed("/data/a-0", DiskError("/data/a-0", "sync", errno.EIO)),
    OSError(errno.ENOSPC, "no space", "/data"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
    AssertionError("we are wrong"),
    KeyError("t-0"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_what_is_kept_says_the_same_and_holds_nothing(error: Exception) -> None:
    caught, seen = met(error)
    same = kept(caught)
    assert same is not caught and type(same) is type(error)
    assert (str(same), same.args) == (str(error), error.args)
    assert {name: str(value) for name, value in vars(same).items()} == {
        name: str(value) for name, value in vars(error).items()
    }
    assert isinstance(same.__cause__, OSError) and same.__suppress_context__
    assert seen() is not None
    error.__traceback__ = error.__cause__ = error.__context__ = None
    del caught
    assert seen() is None


def test_the_frames_of_an_error_that_is_handed_on_are_empty_and_its_trace_can_still_be_read() -> None:
    caught, seen = met(ValueError("a bug"))
    release_frames(caught)
    assert seen() is None
    frame = caught.__traceback__
    assert frame is not None and frame.tb_next is not None and frame.tb_next.tb_frame.f_code.co_name == "meet"


def test_errors_that_lead_to_each_other_in_a_circle_are_kept() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__context__, second.__cause__ = second, first
    same = kept(first)
    assert same.__context__ is not None and same.__context__.__cause__ is same
    release_frames(first)


# --- nobody keeps an error as it is ---

SOURCE = Path(quorumlog_storage.__file__).parent
KEEPS = ("kept", "str")  # calls that may stand around what is kept


def _bound_errors(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Handlers and functions, each with the name of an error that it has."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.name:
            yield node, node.name
        elif isinstance(node, ast.FunctionDef):
            for argument in (*node.args.args, *node.args.kwonlyargs):
                kind = ast.unparse(argument.annotation) if argument.annotation else ""
                if kind.removesuffix(" | None").endswith(("Exception", "Error")):
                    yield node, argument.arg


def _names_outside_of_calls(value: ast.AST) -> Iterator[str]:
    if isinstance(value, ast.Call | ast.Attribute):
        return
    if isinstance(value, ast.Name):
        yield value.id
    for child in ast.iter_child_nodes(value):
        yield from _names_outside_of_calls(child)


def kept_as_they_are(source: str) -> list[str]:
    """Assignments of an error to an attribute or an element, by their text."""
    found = []
    for owner, name in _bound_errors(ast.parse(source)):
        for node in ast.walk(owner):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                lasting = any(
                    isinstance(part, ast.Attribute | ast.Subscript) for target in targets for part in ast.walk(target)
                )
                if lasting and name in _names_outside_of_calls(node.value):
                    found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.stem)
def test_no_error_is_kept_as_it_is(path: Path) -> None:
    """An error may have another one as its attribute: `kept` looks into it."""
    found = [line for line in kept_as_they_are(path.read_text()) if line not in OF_AN_ERROR]
    assert found == []


OF_AN_ERROR = {
    "self.path, self.cause = (path, cause)",
    "self.path, self.cause, self.log = (path, cause, log)",
}


def test_the_search_finds_them() -> None:
    text = "def f(self, e: Exception):\n self.a = self.a or e\n self.b = kept(e)\n self.c[1] = e, 2\n d = e\n"
    assert kept_as_they_are(text) == ["self.a = self.a or e", "self.c[1] = (e, 2)"]
    text = "try:\n pass\nexcept OSError as e:\n self.a = e\n"
    assert kept_as_they_are(text) == ["self.a = e"]
