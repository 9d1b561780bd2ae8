"""What a format makes of a schema."""

from __future__ import annotations

from typing import Any, Protocol

MAX_SHOWN = 300  # signs of a library's explanation, in an error


class Codec(Protocol):
    """Of one schema. name: of its record, for subjects; "" if it has none.

    `text` is one line of JSON that `from_text` takes back: Avro's JSON encoding, Protobuf's JSON mapping, or JSON.
    """

    @property
    def name(self) -> str: ...

    def encode(self, value: Any) -> bytes:
        """Raises BadValue."""

    def decode(self, data: bytes) -> Any:
        """Raises BadData."""

    def text(self, data: bytes) -> str:
        """Raises BadData."""

    def from_text(self, text: str) -> bytes:
        """Raises BadValue."""


def said(error: BaseException) -> str:
    """A library's error in one bounded line."""
    text = " ".join(str(error).split()) or "no reason was given"
    return f"{type(error).__name__}: {text[:MAX_SHOWN]}"
