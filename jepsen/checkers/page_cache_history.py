"""A history without the records that were allowed to be lost, so that every checker may ask for all others.

Only topics that leave durability to the page cache have allowed losses (jepsen/sim/truth/durability.py). Everything
else is promised for them, too: the order of records, no duplicates, no holes, and that a lost record does not come
back.
"""

from __future__ import annotations

from dataclasses import replace

from jepsen.checkers.history import AllowedLoss, History, Key, Poll, Send, Status


def as_promised(history: History) -> History:
    """Sends whose record was lost are open ones. Reads of it are left out; `as_read` is for the order of reads."""
    if not history.losses:
        return history
    lost = _Losses(history)
    polls = [replace(poll, records=lost.kept(poll)) for poll in history.polls]
    return replace(history, sends=[lost.opened(send) for send in history.sends], polls=polls)


def as_read(history: History) -> History:
    """With all that was read, in the order of reading.

    A reader may stand behind the end of what is left, and go on there once the log has grown. So after a loss, only the
    order within one answer counts.
    """
    if not history.losses:
        return history
    lost = _Losses(history)
    polls = [
        replace(poll, assignment=-number) if lost.is_after_one(poll) else poll
        for number, poll in enumerate(history.polls, start=1)
    ]
    return replace(history, polls=polls)


class _Losses:
    def __init__(self, history: History) -> None:
        self._final = history.final
        self._invoked_ns = {send.value: send.invoked_ns for send in history.sends}
        self._losses: dict[tuple[Key, int], list[AllowedLoss]] = {}
        for loss in history.losses:
            self._losses.setdefault((loss.key, loss.life), []).append(loss)

    def opened(self, send: Send) -> Send:
        if send.status is Status.OK and self._is_lost(send.key, send.life, send.offset, send.value):
            return replace(send, status=Status.INFO, offset=-1)
        return send

    def is_after_one(self, poll: Poll) -> bool:
        return any(loss.at_ns <= poll.at_ns for loss in self._losses.get((poll.key, poll.life), ()))

    def kept(self, poll: Poll) -> tuple[tuple[int, str], ...]:
        return tuple(one for one in poll.records if not self._is_lost(poll.key, poll.life, *one))

    def _is_lost(self, key: Key, life: int, offset: int, value: str) -> bool:
        """It may have been lost, and it is not there at the end."""
        if self._final.get(key, {}).get(offset) == value:
            return False
        sent_ns = self._invoked_ns.get(value)
        losses = self._losses.get((key, life), ())
        return sent_ns is not None and any(offset >= loss.end and sent_ns <= loss.at_ns for loss in losses)
