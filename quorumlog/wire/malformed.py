"""The errors that the lane's parsers raise for bytes that they cannot accept; they raise no others."""

from __future__ import annotations


class Malformed(Exception):
    """The peer's bytes violate the protocol; its connection cannot be used any more."""


class Unsupported(Exception):
    """A request of an API or version that this listener does not serve."""
