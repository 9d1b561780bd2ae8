"""Loading a snapshot into the listeners: however it ends, its file is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from quorumlog_quorum.snapshot_service.snapshot_loading import SnapshotLoading
from quorumlog_quorum.snapshots import CorruptSnapshot, SnapshotId
from quorumlog_storage.writer.writer import Outcome

PIECES = [b"first", b"second", b""]


class Reader:
    """Gives these pieces; an exception among them is raised."""

    heading = None

    def __init__(self, pieces: list[bytes | Exception]) -> None:
        self._pieces, self.closed = list(pieces), 0

    def read(self) -> bytes:
        piece = self._pieces.pop(0)
        if isinstance(piece, Exception):
            raise piece
        return piece

    def close(self) -> None:
        self.closed += 1


class Store:
    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def open_reader(self, _snapshot: SnapshotId, opened: Callable[[Any], None]) -> None:
        opened(self.reader)

    def read_later(self, read: Callable[[], bytes], done: Callable[[Outcome], None]) -> None:
        try:
            outcome = Outcome(value=read())
        except CorruptSnapshot as error:
            outcome = Outcome(error=error)
        asyncio.get_running_loop().call_soon(done, outcome)


class Listener:
    """It raises on the piece `bad`."""

    def __init__(self, bad: bytes) -> None:
        self._bad = bad

    def on_snapshot(self, _heading: Any) -> Listener:
        return self

    def add(self, batches: bytes) -> Iterator[None]:
        if batches == self._bad:
            raise ValueError("it does not fit")
        yield

    def finish(self) -> None:
        pass


CASES: list[tuple[str, list[bytes | Exception], bytes, int | None, str]] = [
    ("it is loaded", [*PIECES], b"", None, "done"),
    ("a piece is damaged", [b"first", CorruptSnapshot("s", 5, "damaged")], b"", None, "CorruptSnapshot"),
    ("a listener refuses a piece", [*PIECES], b"second", None, "ValueError"),
    ("it is stopped between two pieces", [*PIECES], b"", 1, ""),
    ("it is stopped within a piece", [*PIECES], b"", 2, ""),
]


@pytest.mark.parametrize(
    ("pieces", "bad", "stopped_after", "ends"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_the_file_is_closed_once(
    pieces: list[bytes | Exception], bad: bytes, stopped_after: int | None, ends: str
) -> None:
    """stopped_after: turns of the loop."""

    async def scenario() -> None:
        reader, told = Reader(pieces), list[str]()
        loading = SnapshotLoading(
            Store(reader),  # type: ignore[arg-type]
            SnapshotId(7, 1),
            [Listener(bad)],  # type: ignore[list-item]
            lambda: told.append("done"),
            lambda error: told.append(type(error).__name__),
        )
        loading.start()
        for turn in range(20):
            if turn == stopped_after:
                loading.stop()
            await asyncio.sleep(0)
        assert told == ([ends] if ends else []) and reader.closed == 1

    asyncio.run(scenario())
