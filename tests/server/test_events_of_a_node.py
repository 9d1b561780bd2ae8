"""Events that a node's edges tell: a slow disk, a certificate that ends."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quorumlog.security.tls.reload import Certificates
from quorumlog_server.directories.disk_watch import SLOW_MS, TOLD_EVERY_MS, DiskWatch
from quorumlog_server.edge import listener_keys
from quorumlog_server.edge.listener_keys import DAY_MS, EXPIRY_DAYS, ListenerKeys
from quorumlog_storage.writer.directory_life import DirectoryLife
from quorumlog_storage.writer.stall_watch import OpenCall

Told = list[tuple[str, str, str]]


class Workers:
    """One worker of one directory, with the calls that a test opens."""

    def __init__(self) -> None:
        self.all: list[Any] = [SimpleNamespace(on_busy=lambda _call: None, open_calls=lambda: self.calls)]
        self.calls: list[OpenCall] = []

    def on_new(self, _call: Any) -> None:
        pass

    def of_directory(self, _path: str) -> list[Any]:
        return self.all


def test_a_call_that_does_not_return_is_told_now_and_then() -> None:
    clock, workers, told = SimpleNamespace(ms=0), Workers(), cast("Told", [])
    clock.now_ms = lambda: clock.ms
    life = cast(DirectoryLife, SimpleNamespace(path="/data", is_offline=False, generation=1))
    watch = DiskWatch([life], cast(Any, workers), 60_000, cast(Any, clock), lambda *what: told.append(what))

    def look(ms: int) -> None:
        clock.ms += ms
        watch._look(watch._watched[0])

    workers.calls = [OpenCall("sync", "/data/x.log")]
    look(0)
    look(SLOW_MS - 1)
    assert told == []
    look(1)
    look(100)
    assert [one[:2] for one in told] == [("disk.slow", "directory//data")]
    look(TOLD_EVERY_MS)
    assert len(told) == 2
    workers.calls = []
    look(TOLD_EVERY_MS)
    assert len(told) == 2


@pytest.mark.parametrize(
    ("left_ms", "says"),
    [
        (EXPIRY_DAYS * DAY_MS, None),
        (3 * DAY_MS + 5, "expires in 3 days"),
        (5, "expires in 0 days"),
        (-5, "has expired"),
    ],
)
def test_a_certificate_that_ends_is_told_once_a_day(left_ms: int, says: str | None) -> None:
    told: Told = []
    generation = SimpleNamespace(number=2, material=SimpleNamespace(not_after_ms=left_ms))
    keys = ListenerKeys({"CLIENT": cast(Certificates, SimpleNamespace(generation=generation))})
    keys.told = lambda *what: told.append(what)

    async def run() -> None:
        turns = 0

        async def pause(_ms: int) -> None:
            nonlocal turns
            turns += 1
            if turns == 3:
                raise asyncio.CancelledError

        keys._pause = pause  # type: ignore[method-assign]
        await keys._watch_expiry(lambda: 0)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    want = [] if says is None else [("tls.expiry", "listener/CLIENT", f"the certificate of generation 2 {says}")]
    assert told == want and listener_keys.DAY_MS == 86_400_000
