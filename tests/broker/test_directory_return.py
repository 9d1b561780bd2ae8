"""What an operator may ask of a log directory that is offline, and what the controller must know first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.worker import SimWorker
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.nursery import Nursery
from quorumlog_broker.directory_return import TOLD_WAIT_MS, DirectoryReturn
from quorumlog_broker.logdirs.log_directory import LogDirectory
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.writer.directory_life import DirectoryLife, LifeEvent
from quorumlog_storage.writer.writer import DirectoryWriter

PATH, ID = "/d0", bytes([7]) * 16


class World:
    def __init__(self, *, fails: bool = True) -> None:
        self.scheduler = Scheduler(1, None)
        self.loop = SimLoop(self.scheduler, "n1")
        self.life = DirectoryLife(PATH)
        self.life.step(LifeEvent.OPENED, self.life.generation)
        if fails:
            self.life.fail(OSError("EIO"), self.life.generation)
        self.known: tuple[bytes, ...] = (ID,)  # directories of this broker, as the controller has them
        self.done: list[str] = []
        self.reopens = True
        image = SimpleNamespace(brokers=self)
        self.asked = DirectoryReturn(
            1,
            [self._directory()],
            cast(Any, SimpleNamespace(take_back=self._take_back)),
            cast(Any, SimpleNamespace(register_again=self._note("registered"), on_directories_changed=lambda: None)),
            cast(Any, SimpleNamespace(image=image)),
            Nursery(self._crash),
            self._reopen,
            lambda _: self.done.append("returned"),
        )

    def get(self, _node_id: int) -> Any:
        """The image's broker."""
        return SimpleNamespace(log_directories=self.known)

    def _note(self, what: str) -> Any:
        return lambda: self.done.append(what)

    def _crash(self, name: str, error: BaseException) -> None:
        raise AssertionError(name) from error

    def _directory(self) -> LogDirectory:
        disk, life = SimDisk(), self.life
        return LogDirectory(
            directory_id=ID,
            life=life,
            generation=life.generation,
            partitions=PartitionDirectories(disk, PATH),
            worker=SimWorker(disk, DirectoryWriter(PATH, life.generation), self.loop.deliver_later),
        )

    async def _reopen(self, path: str) -> LogDirectory:
        if not self.reopens:
            raise OSError(f"{path} is not mounted")
        self.done.append("opened")
        self.life.step(LifeEvent.VERIFICATION_BEGAN, self.life.generation)
        return self._directory()

    async def _take_back(self, directory: LogDirectory) -> None:
        self.done.append("verified")
        directory.life.step(LifeEvent.VERIFIED, directory.generation)

    def begin(self, path: str = PATH) -> ErrorCode | None:
        """The error that the operator gets."""
        limit_ns = self.scheduler.now_ns + 2 * TOLD_WAIT_MS * NS_PER_MS
        try:
            self.loop.run_until_complete(self.asked.begin(path), limit_ns)
        except ApiError as error:
            return error.code
        self.scheduler.run_for(1_000 * NS_PER_MS)
        return None


def test_it_is_opened_verified_and_told() -> None:
    world = World()
    world.known = ()
    assert world.begin() is None
    assert world.done == ["opened", "verified", "returned", "registered"] and world.life.is_online


def test_it_waits_until_the_controller_has_taken_the_directory_away() -> None:
    world = World()
    assert world.begin() is ErrorCode.REQUEST_TIMED_OUT
    assert world.done == [] and world.life.is_offline

    def told() -> None:
        world.known = ()

    world.scheduler.call_later(500 * NS_PER_MS, told)
    assert world.begin() is None and world.done[0] == "opened"


@pytest.mark.parametrize(
    ("path", "fails", "code"),
    [("/elsewhere", True, ErrorCode.LOG_DIR_NOT_FOUND), (PATH, False, ErrorCode.INVALID_REQUEST)],
    ids=["not in log.dirs", "it is online"],
)
def test_what_cannot_be_asked_changes_nothing(path: str, fails: bool, code: ErrorCode) -> None:
    world = World(fails=fails)
    world.known = ()
    assert world.begin(path) is code and world.done == []


def test_a_directory_that_cannot_be_opened_stays_offline_and_may_be_tried_again() -> None:
    world = World()
    world.known, world.reopens = (), False
    assert world.begin() is ErrorCode.KAFKA_STORAGE_ERROR and world.life.is_offline
    world.reopens = True
    assert world.begin() is None and world.life.is_online
