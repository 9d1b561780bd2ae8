"""Whether somebody still reads what a command prints: one that waits for records would else never notice `| head`."""

from __future__ import annotations

import select


def check_reader(descriptor: int) -> None:
    """Raises BrokenPipeError if the other end of this pipe was closed. Anything else than a pipe passes."""
    poll = select.poll()
    poll.register(descriptor, 0)  # errors are told without being asked for
    if any(events & select.POLLERR for _, events in poll.poll(0)):
        raise BrokenPipeError
