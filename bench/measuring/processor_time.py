"""The processor time of processes, user and system apart, as the kernel counts it (in ticks of 10 ms).

All threads of a process count, those that have ended included. Child processes do not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MAIN = "main thread"


class Spent(NamedTuple):
    """Seconds."""

    user_s: float
    system_s: float

    @property
    def total_s(self) -> float:
        return self.user_s + self.system_s

    def since(self, before: Spent) -> Spent:
        return Spent(self.user_s - before.user_s, self.system_s - before.system_s)

    def plus(self, other: Spent) -> Spent:
        return Spent(self.user_s + other.user_s, self.system_s + other.system_s)


NOTHING = Spent(0.0, 0.0)


def spent_by(pids: Iterable[int]) -> Spent:
    """Of all these processes together since their start. Raises FileNotFoundError if one has ended."""
    total = NOTHING
    for pid in pids:
        total = total.plus(parse_stat(Path(f"/proc/{pid}/stat").read_text()))
    return total


def spent_by_threads(pids: Iterable[int]) -> dict[str, Spent]:
    """Of all these processes together, by thread name; a process's first thread is MAIN. Only threads that still run:
    the sum may be less than `spent_by`."""
    found: dict[str, Spent] = {}
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # it ended since it was listed
                name = MAIN if task.name == str(pid) else (task / "comm").read_text().strip()
                found[name] = found.get(name, NOTHING).plus(parse_stat((task / "stat").read_text()))
    return found


def parse_stat(text: str) -> Spent:
    """text: of /proc/PID/stat. The name, the second field, is in parentheses and may hold spaces and parentheses."""
    fields = text.rpartition(")")[2].split()
    return Spent(int(fields[11]) / _TICKS_PER_S, int(fields[12]) / _TICKS_PER_S)  # fields 14 and 15 of proc(5)
