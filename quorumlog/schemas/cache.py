"""What a registry has told, up to a number of entries; the one that was used least recently goes for a new one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """From any thread. now_ms: a clock that never goes back."""

    def __init__(self, most: int, now_ms: Callable[[], int]) -> None:
        assert most > 0
        self._most, self._now_ms = most, now_ms
        self._held: OrderedDict[K, tuple[V, int | None]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            value, ends_ms = found
            if ends_ms is not None and self._now_ms() >= ends_ms:
                del self._held[key]
                return None
            self._held.move_to_end(key)
            return value

    def put(self, key: K, value: V, ttl_ms: int | None = None) -> None:
        """ttl_ms: how long it holds; None: for ever."""
        with self._lock:
            self._held[key] = (value, None if ttl_ms is None else self._now_ms() + ttl_ms)
            self._held.move_to_end(key)
            while len(self._held) > self._most:
                self._held.popitem(last=False)

    def __len__(self) -> int:
        return len(self._held)
