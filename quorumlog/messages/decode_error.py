"""What every decoder of the schema raises for bytes that are no such message; nothing else escapes a decoder."""

from __future__ import annotations


class DecodeError(ValueError):
    """The peer's bytes are not the message that they should be.

    where: the message's name, or `Message.field` where one field is to blame.
    """

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where, self.reason = where, reason
