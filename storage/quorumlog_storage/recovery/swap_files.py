"""Load passes 1 to 3: what a start makes of a swap that was interrupted (Kafka's `LogLoader`).

1. Files that end in `.cleaned` belong to a swap that has not begun, or not for all outputs of its group. They are
   removed. Every `.swap` file at or behind the first of them goes before, durably: outputs get `.swap` from the last
   one on, so its group is not complete.
2. What is left under `.swap` is a whole group, and its bytes were synced before it got the name. Live segments in the
   range of its offsets are the sources, or what is left of them: they are removed, durably.
3. The suffix is dropped, durably.

A crash in between repeats all of it. An index has the suffix of its segment; one that lacks it is built again.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.ids import Offset
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.files.names import CLEANED_SUFFIX, LOG_SUFFIX, SWAP_SUFFIX, parse_segment_name
from quorumlog_storage.segment.segment import Segment


def finish_swaps(disk: Disk, path: str, names: Sequence[str], index_interval_bytes: int) -> bool:
    """names: of the files in `path`. True if any of them changed, durably. Raises CorruptBatch, DiskError."""
    cleaned = _of(names, CLEANED_SUFFIX)
    swapped = _of(names, SWAP_SUFFIX)
    if not cleaned and not swapped:
        return False
    first_cleaned = _first_log(cleaned)
    if first_cleaned is not None:
        _drop(disk, path, swapped, [name for name, (base, _) in swapped.items() if base >= first_cleaned])
    for name in cleaned:
        disk.unlink(f"{path}/{name}")
    bases = sorted(base for base, suffix in swapped.values() if suffix == LOG_SUFFIX)
    _drop(disk, path, swapped, [name for name, (base, _) in swapped.items() if base not in bases])  # live already
    if bases:
        _complete(disk, path, names, bases, index_interval_bytes)
    disk.sync_directory(path)
    return True


def whole_swaps(names: Sequence[str]) -> list[Offset]:
    """Bases of the `.swap` segments that a start would keep (steps 1 and 2), ascending. Changes nothing."""
    first_cleaned = _first_log(_of(names, CLEANED_SUFFIX))
    bases = sorted(base for base, suffix in _of(names, SWAP_SUFFIX).values() if suffix == LOG_SUFFIX)
    return [base for base in bases if first_cleaned is None or base < first_cleaned]


def _first_log(parsed: dict[str, tuple[Offset, str]]) -> Offset | None:
    return min((base for base, suffix in parsed.values() if suffix == LOG_SUFFIX), default=None)


def _complete(disk: Disk, path: str, names: Sequence[str], bases: Sequence[Offset], interval: int) -> None:
    outputs = [Segment(disk, path, base, interval, SWAP_SUFFIX) for base in bases]
    end = outputs[-1].end_offset()
    for name in names:
        found = parse_segment_name(name)
        if found is not None and bases[0] <= found[0] < end:
            disk.unlink(f"{path}/{name}")
    disk.sync_directory(path)
    for output in outputs:
        output.rename("")
        output.let_go()


def _drop(disk: Disk, path: str, swapped: dict[str, tuple[Offset, str]], names: Sequence[str]) -> None:
    """Durably: one that came back after the `.cleaned` files of its group were gone would be taken for whole."""
    for name in names:
        disk.unlink(f"{path}/{name}")
        del swapped[name]
    if names:
        disk.sync_directory(path)


def _of(names: Sequence[str], suffix: str) -> dict[str, tuple[Offset, str]]:
    """By name: (base offset, the suffix before this one)."""
    parsed = {name: parse_segment_name(name.removesuffix(suffix)) for name in names if name.endswith(suffix)}
    return {name: found for name, found in parsed.items() if found is not None}
