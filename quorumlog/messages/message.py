"""The decorator of generated messages: immutable to the type checker, and made at less than half the price.

A frozen dataclass sets each field through `object.__setattr__`: 0.66 us for one with six fields, 0.30 us without
(CPython 3.11). A request of one follower makes a dozen of them. So nothing but mypy stops an assignment to a field;
it reads this decorator as `dataclass` itself. Equality and hash are by value, as those of frozen ones are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["message"]

if TYPE_CHECKING:
    from dataclasses import dataclass as message
else:
    from dataclasses import dataclass

    def message(*, frozen: bool, slots: bool, kw_only: bool):
        """Takes what mypy has to be told, and always the same."""
        assert frozen and slots and kw_only
        return dataclass(slots=True, kw_only=True, unsafe_hash=True)
