"""Loss 4: an exception that is no disk error, after a batch was written, leaves its log in use.

The next batch is written behind the first one, under the same offsets, and is acknowledged. Recovery keeps the batch
that failed and cuts the one that was acknowledged.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from jepsen.sim.machine.disk import SimFile
from tests.losses.partition_on_disk import Partition, batch, new_disk
from tests.losses.promises import promised

MOST_CALLS = 200  # of functions of the storage engine, between a write and the end of its turn's write phase


def test_what_is_acknowledged_after_an_exception_behind_a_write_is_there_after_a_restart() -> None:
    faults: list[str] = []
    for call in range(MOST_CALLS):
        struck, fault = strike(call)
        faults += [fault] if fault else []
        if not struck:
            assert call > 3, "hardly anything ran after the write"
            break
    with promised():
        assert not faults, f"{len(faults)} of {call} places: {faults[:3]}"


def strike(call: int) -> tuple[bool, str]:
    """Let the call number `call` after the write of one batch end in a MemoryError. (it came to that, what was lost)"""
    partition = Partition(new_disk(), segment_bytes=1 << 20)
    partition.append(batch(0, [b"first"]))
    with memory_error(call) as struck:
        (failed,) = partition.append(batch(1, [b"failed", b"failed"], epoch=2))
    if failed.error is None:
        return bool(struck), "" if not struck else f"{struck[0]}: acknowledged all the same"
    (next_one,) = partition.append(batch(1, [b"acknowledged"], epoch=3))
    partition.kill()
    partition.open()
    found = partition.read()
    if next_one.error is None and found.get(1) != b"acknowledged":
        return True, f"{struck[0]}: offset 1 holds {found.get(1)!r}"
    return True, "" if found.get(0) == b"first" else f"{struck[0]}: the first record is gone"


@contextmanager
def memory_error(call: int) -> Iterator[list[str]]:
    """Raise a MemoryError at a call of a function of `storage`, the `call`-th after a write to a segment.

    Yields a list that then holds the name of the function.
    """
    struck: list[str] = []
    write, left = SimFile.pwritev, [call]

    def pwritev(file: SimFile, *arguments: Any, **options: Any) -> int:
        written = write(file, *arguments, **options)
        if file.path.endswith(".log"):
            sys.settrace(on_call)
        return written

    def on_call(frame: FrameType, event: str, argument: Any) -> None:
        if "/storage/" not in frame.f_code.co_filename or struck:
            return
        if frame.f_code.co_name == "sync_phase":
            sys.settrace(None)
        elif left[0] == 0:
            struck.append(frame.f_code.co_name)
            sys.settrace(None)
            raise MemoryError(f"at {frame.f_code.co_name}")
        left[0] -= 1

    before = sys.gettrace()
    SimFile.pwritev = pwritev  # type: ignore[method-assign]
    try:
        yield struck
    finally:
        sys.settrace(before)
        SimFile.pwritev = write  # type: ignore[method-assign]
