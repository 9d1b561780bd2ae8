"""A node's directories are opened at its start without those whose disk hangs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from jepsen.sim.machine.disk import SimDisk
from quorumlog_server.config.config import NodeConfig, from_values
from quorumlog_server.directories.directories import DirectoryProblem, NodeDirectories, open_directories
from quorumlog_server.directories.directory_start import DirectoryStart
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.replica_directories import CannotReturn, DirectoryWorkers
from quorumlog_server.directories.secret import SECRET_NAME, new_secret
from quorumlog_server.edge.edges import Edges
from quorumlog_server.edge.real_edges import SystemClock
from quorumlog_storage.directory.directory import LOCK_NAME
from quorumlog_storage.directory.meta_properties import META_PROPERTIES
from quorumlog_storage.edge.worker import ThreadWorker
from quorumlog_storage.files.disk import DirectoryLocked
from quorumlog_storage.writer.directory_life import DirectoryOffline
from quorumlog_storage.writer.stall_watch import DirectoryStalled
from quorumlog_storage.writer.worker import Worker
from quorumlog_storage.writer.writer import DirectoryWriter
from tests.rules import rule

PATHS = ("/data/a", "/data/b", "/data/c")
METADATA, OTHER = PATHS[0], PATHS[1]
OTHER_ID = bytes([2]) * 16
STALL_MS = 200
SOON_S = 20.0


def config(stall_ms: int = STALL_MS) -> NodeConfig:
    return from_values(
        {
            "node.id": "1",
            "controller.quorum.voters": "1@127.0.0.1:1",
            "log.dirs": ",".join(PATHS),
            "process.roles": "broker,controller",
            "log.dir.stall.ms": str(stall_ms),
        }
    )


class HangingDisk:
    """A disk whose calls to one path do not return until they are let go; they are performed then."""

    def __init__(self, disk: SimDisk) -> None:
        self._disk, self.resources = disk, disk.resources
        self.path = ""
        self.let_go = threading.Event()
        self.met = threading.Event()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._disk, name)

        def perhaps_hangs(path: str, *rest: Any, **how: Any) -> Any:
            if path == self.path:
                self.met.set()
                assert self.let_go.wait(SOON_S), "nobody lets it go"
            return call(path, *rest, **how)

        return perhaps_hangs


class Machine:
    """The edges that a start uses, with threads."""

    def __init__(self) -> None:
        self.sim = SimDisk()
        ids = iter([bytes([number]) * 16 for number in range(1, 9)])
        format_node(
            config(),
            cluster_id="c",
            secret=new_secret(bytes(range(32))),
            disk=self.sim,
            new_uuid=lambda: next(ids),
            protect=lambda _: None,
        )
        self.disk = HangingDisk(self.sim)
        self.clock = SystemClock()
        self.start: DirectoryStart | None = None

    def worker(self, writer: DirectoryWriter) -> Worker:
        loop = asyncio.get_running_loop()

        def post(call: Callable[[], None]) -> None:
            if not loop.is_closed():  # what hung is let go at the end of a test
                loop.call_soon_threadsafe(call)

        return ThreadWorker(writer, post)

    async def open(self) -> NodeDirectories:
        self.start = DirectoryStart(config(), cast(Edges, self))
        try:
            return await asyncio.wait_for(self.start.open(), SOON_S)
        except TimeoutError:
            pytest.fail("the start waits for a directory that hangs")


@pytest.fixture
def machine() -> Iterator[Machine]:
    made = Machine()
    yield made
    made.disk.let_go.set()


def run(work: Callable[[], Any]) -> Any:
    return asyncio.run(work())


def test_directories_that_answer_are_opened_as_by_a_command(machine: Machine) -> None:
    opened = run(machine.open)
    assert [entry.path for entry in opened.opened] == list(PATHS) and not opened.failures
    assert set(opened.probes) == set(PATHS) and not opened.hanging
    opened.close(in_order=PATHS)
    again = open_directories(machine.sim, config())
    assert (again.ids, again.secret, again.first.level) == (opened.ids, opened.secret, opened.first.level)
    assert all(entry.clean_shutdown is not None for entry in again.opened)


@rule("storage 3.20")
@pytest.mark.parametrize("name", [META_PROPERTIES, LOCK_NAME])
def test_a_start_goes_on_without_a_directory_that_hangs(machine: Machine, name: str) -> None:
    machine.disk.path = f"{OTHER}/{name}"
    opened = run(machine.open)
    assert [entry.path for entry in opened.opened] == [METADATA, PATHS[2]]
    (failure,) = opened.failures
    assert isinstance(failure.cause, DirectoryStalled)
    assert f"opening of {OTHER} has not returned" in str(failure) and "log.dir.stall.ms=200" in str(failure)
    assert opened.previous_broker_epoch == -1 and opened.hanging == {OTHER}


def test_a_start_that_waits_says_for_which_directory(machine: Machine) -> None:
    machine.disk.path = f"{OTHER}/{META_PROPERTIES}"

    async def watched() -> list[dict[str, int]]:
        """What it waits for, while that is also the one that hangs; before and after it asks the metadata directory."""
        opening = asyncio.ensure_future(machine.open())
        seen: list[dict[str, int]] = []
        while not opening.done():
            await asyncio.sleep(STALL_MS / 1_000 / 10)
            assert machine.start is not None
            if OTHER in machine.start.waiting:
                seen.append(machine.start.waiting)
        assert machine.start is not None and not machine.start.waiting and machine.start.any_stalled
        return seen

    last = run(watched)[-1]
    assert set(last) == {OTHER} and 0 < last[OTHER] <= STALL_MS


@rule("storage 3.20")
@pytest.mark.parametrize("name", [META_PROPERTIES, LOCK_NAME, SECRET_NAME])
def test_a_start_ends_where_the_metadata_directory_hangs(machine: Machine, name: str) -> None:
    machine.disk.path = f"{METADATA}/{name}"

    async def refused() -> str:
        with pytest.raises(DirectoryProblem) as raised:
            await machine.open()
        return str(raised.value)

    why = run(refused)
    assert f"opening of {METADATA} has not returned" in why
    machine.sim.lock(f"{OTHER}/{LOCK_NAME}").release()  # no other directory stays locked


async def refusal(workers: DirectoryWorkers) -> str:
    """Why the directory cannot come back; "" if it is back."""
    try:
        entry = await workers.open_again(OTHER)
    except CannotReturn as error:
        return str(error)
    except (DirectoryLocked, DirectoryOffline) as error:
        pytest.fail(f"it was tried, and failed: {error}")
    assert entry.directory_id == OTHER_ID
    return ""


def test_what_is_opened_too_late_is_closed_again_and_only_then_may_it_come_back(machine: Machine) -> None:
    machine.disk.path = f"{OTHER}/{META_PROPERTIES}"

    async def late() -> None:
        opened = await machine.open()
        workers = DirectoryWorkers(config(), cast(Edges, machine), opened)
        assert "has still not returned" in await refusal(workers)
        machine.disk.let_go.set()
        until = asyncio.get_running_loop().time() + SOON_S
        while opened.hanging and asyncio.get_running_loop().time() < until:  # noqa: ASYNC110  # nobody tells it
            await asyncio.sleep(0.01)
        assert not opened.hanging
        assert await refusal(workers) == ""
        workers.close()

    run(late)
