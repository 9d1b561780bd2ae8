"""Steps of the metadata loader that no delivery of the quorum's driver takes: one in each turn of the loop.

A broker subscribes when it has listed its directories. By then the image may hold all its partitions, and to place them
takes a tenth of a second. The same holds for an image that becomes publishable because the high watermark is known. The
driver calls for neither of them, so they are taken here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from quorumlog_quorum.metadata.listener import Steps

Later = Callable[[Callable[[], None]], object]  # `loop.call_soon`


class OwnSteps:
    """Taken in the order in which they were added. Used on the loop."""

    def __init__(self, later: Later | None, on_done: Callable[[], None]) -> None:
        """later: makes a call in the loop's next turn; None: there is no loop, and all steps are taken where they are
        added. on_done: the last step was taken."""
        self._later, self._on_done = later, on_done
        self._waiting: deque[Steps] = deque()
        self._is_due = False
        self._is_stepping = False

    def __bool__(self) -> bool:
        """Some are left."""
        return bool(self._waiting)

    def add(self, steps: Steps) -> None:
        """The first step is taken now, unless others wait. An exception of a step is that of the call that takes it."""
        self._waiting.append(steps)
        if len(self._waiting) == 1:
            self._step()
        self._go_on()

    def rest(self) -> Steps:
        """All that are left, for who must not act before they are done."""
        while self._waiting:
            self._step()
            if self._waiting:
                yield

    def _step(self) -> None:
        if self._is_stepping:
            return  # inside of a step, of which the loader was asked for more
        self._is_stepping = True
        try:
            next(self._waiting[0])
        except StopIteration:
            self._waiting.popleft()
            if not self._waiting:
                self._on_done()
        finally:
            self._is_stepping = False

    def _go_on(self) -> None:
        if self._later is None:
            for _ in self.rest():
                pass
        elif self._waiting and not self._is_due:
            self._is_due = True
            self._later(self._turn)

    def _turn(self) -> None:
        self._is_due = False
        if self._waiting:
            self._step()
        self._go_on()
