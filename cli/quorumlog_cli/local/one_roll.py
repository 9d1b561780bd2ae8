"""Two rolls of one local cluster at once could stop two nodes: the second one is refused."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quorumlog_cli.terminal.errors import CliError, Exit

LOCK = ".roll.lock"


@contextmanager
def one_roll(root: Path) -> Iterator[None]:
    """Raises CliError(PRECONDITION). The file stays; the lock ends with the process."""
    with (root / LOCK).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CliError(
                Exit.PRECONDITION, f"another quorumlog roll restarts the nodes of {root}", "wait until it has ended"
            ) from None
        yield
