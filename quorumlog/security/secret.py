"""A password, a token or a key that must not reach a log, a plan or an error."""

from __future__ import annotations

import hmac
from typing import NoReturn

HIDDEN = "[hidden]"  # as Kafka prints values of type PASSWORD


class Secret:
    """Text that prints as `[hidden]` wherever it is printed, and that is pickled nowhere. Two are compared in the same
    time wherever they differ."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself. Each call is a place to look at in a review."""
        return self._value

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    __hash__ = None  # type: ignore[assignment]  # a hash of a short secret gives it away

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled: pass its source, and resolve it where it is used")
