"""A line of progress now and then, however often there is something to say."""

from __future__ import annotations

import time
from collections.abc import Callable

PAUSE_S = 5.0  # between two lines, at least


class Telling:
    """say: is given each line. It begins when it is made."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._began = self._told = time.monotonic()

    @property
    def took_s(self) -> float:
        return time.monotonic() - self._began

    def tell(self, how_far: str) -> None:
        """how_far: such as `day 3 of 20`."""
        if time.monotonic() - self._told > PAUSE_S:
            self._told = time.monotonic()
            self._say(f"{how_far}, {self.took_s:.0f} s")
