"""What every parser of the lane raises for bytes that are no such thing; nothing else escapes a parser."""

from __future__ import annotations


class Malformed(Exception):
    """The peer's bytes are not what they should be; its connection cannot be trusted any more."""


class Unsupported(Exception):
    """A request of an API or version that this listener does not serve."""
