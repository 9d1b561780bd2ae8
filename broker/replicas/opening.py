"""Which logs a broker still has to open before it may serve.

Those that the first image assigns to it, and no others: a topic that is created later must not stop a broker that
serves. A log that failed, or is not wanted any more, is not waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from broker.replicas.reconciler import PartitionKey


class Opening:
    """`on_done` is called once, as soon as nothing is left to wait for."""

    def __init__(self, on_done: Callable[[], None]) -> None:
        self._on_done = on_done
        self._waiting: dict[PartitionKey, None] | None = None  # None: not known yet
        self.done = False

    @property
    def left(self) -> int:
        """How many logs are known not to be open yet."""
        return len(self._waiting or ())

    def expect(self, keys: Iterable[PartitionKey]) -> None:
        """Once: these are to be opened, and their opening is under way."""
        assert self._waiting is None, "there is one first image"
        self._waiting = dict.fromkeys(keys)
        self._look()

    def settled(self, key: PartitionKey) -> None:
        """Opened, failed or let go of. Harmless for others and when told again."""
        if self._waiting is not None:
            self._waiting.pop(key, None)
            self._look()

    def _look(self) -> None:
        if not self._waiting and not self.done:
            self.done = True
            self._on_done()
