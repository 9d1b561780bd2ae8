"""The seam to where a round runs: a process of its own, or slices in the directory's reader (`sliced.py`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Protocol

from quorumlog_storage.cleaning.spec import RoundSpec, Step

Read = Callable[[Callable[[], Any]], Awaitable[Any]]  # `DirectoryQueue.read`


class CleanerDied(Exception):
    """The process of the cleaner ended in the middle of a round. Nothing was changed."""

    def __init__(self, status: int | None) -> None:
        super().__init__(
            f"the cleaner's process ended with status {status} in the middle of a round; look for it in the kernel's "
            "log (out of memory?), and lower log.cleaner.dedupe.buffer.size if memory is short"
        )


class Runner(Protocol):
    def steps(self, spec: RoundSpec, read: Read) -> AsyncGenerator[Step, None]:
        """One round, throttled. The last step is RoundDone. A round that is closed before leaves nothing running.

        Raises what `quorumlog_storage.cleaning.round.clean` raises; CleanerDied.
        """
        ...

    async def rest(self) -> None:
        """No round is due for a while: free what is kept for the next one."""
        ...
