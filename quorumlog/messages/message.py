"""The decorator of generated messages: immutable to the type checker, made at less than half the price, soon defined.

A frozen dataclass sets each field through `object.__setattr__`: 0.66 us for one with six fields, 0.30 us without
(CPython 3.11). A request of one follower makes a dozen of them. So nothing but mypy stops an assignment to a field;
it reads this decorator as `dataclass` itself. Equality and hash are by value, as those of frozen ones are.

A dataclass compiles four methods for each class; of 134 messages that was 35 ms in each process's start. Of those only
`__init__` is compiled here, and the others are shared: 13 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["message"]

SECRET_FIELDS = frozenset({"salted_password", "stored_key", "server_key"})  # of any message; never printed

if TYPE_CHECKING:
    from dataclasses import dataclass as message
else:
    from dataclasses import dataclass
    from operator import attrgetter

    def message(*, frozen: bool, slots: bool, kw_only: bool):
        """Takes what mypy has to be told, and always the same."""
        assert frozen and slots and kw_only
        return _define

    def _define(cls):
        cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass works out a signature to put there
        made = dataclass(slots=True, kw_only=True, eq=False, repr=False)(cls)
        made._values = attrgetter(*made.__slots__) if made.__slots__ else _no_values
        made.__eq__, made.__hash__, made.__repr__ = _equal, _hash, _repr
        return made

    def _no_values(_message):
        return ()

    def _equal(self, other):
        cls = self.__class__
        return cls._values(self) == cls._values(other) if other.__class__ is cls else NotImplemented

    def _hash(self):
        return hash(self.__class__._values(self))

    def _repr(self):
        fields = ", ".join(f"{name}={_shown(self, name)}" for name in self.__slots__)
        return f"{self.__class__.__qualname__}({fields})"

    def _shown(message, name):
        return "[hidden]" if name in SECRET_FIELDS else repr(getattr(message, name))
