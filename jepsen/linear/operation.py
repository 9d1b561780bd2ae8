"""One operation of a history: who called what, when, and what was answered."""

from __future__ import annotations

from dataclasses import dataclass

OK = "ok"  # the answer of a change that was carried out
OPEN = None  # the outcome is not known: it may take effect at any time after the call, or never


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """number: unique in its history. kind, argument: what was asked, in the words of a model.

    answer: OK, an error's name or what was read, in the words of the model; OPEN.
    returned_ns: when the answer came; it has no meaning if the operation is open.
    """

    number: int
    process: str
    kind: str
    argument: str = ""
    answer: str | None = OPEN
    invoked_ns: int
    returned_ns: int = -1

    def __post_init__(self) -> None:
        assert self.is_open or self.returned_ns >= self.invoked_ns, self

    @property
    def is_open(self) -> bool:
        return self.answer is OPEN

    def __str__(self) -> str:
        until = "open" if self.is_open else f"{self.returned_ns / 1e9:.6f}"
        asked = f"{self.kind} {self.argument}".rstrip()
        told = "" if self.is_open else f" -> {self.answer}"
        return f"[{self.invoked_ns / 1e9:.6f}, {until}] {self.process}: {asked}{told}"
