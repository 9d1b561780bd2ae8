"""The steps that generated decoders share: each turns what protobuf lets through, or raises, into a DecodeError."""

from __future__ import annotations

from enum import IntEnum
from typing import Never, TypeVar

from google.protobuf import message as protobuf

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.decode_error import DecodeError

Message = TypeVar("Message", bound=protobuf.Message)
Enum = TypeVar("Enum", bound=IntEnum)


def parse(kind: type[Message], data: Buffer) -> Message:
    """A protobuf object of this kind from its bytes."""
    message = kind()
    try:
        message.ParseFromString(data if type(data) is bytes else bytes(data))
    except protobuf.DecodeError as error:
        raise DecodeError(kind.DESCRIPTOR.name, str(error)) from error
    return message


def parse_with_unknown(kind: type[Message], data: Buffer) -> tuple[Message, int]:
    """The same, without what the schema does not know, and how many of the bytes that was.

    Protobuf reads over unknown fields in silence; bytes that it would not write itself count as unknown, too.
    """
    message = parse(kind, data)
    message.DiscardUnknownFields()
    return message, len(data) - message.ByteSize()


def enum_of(kind: type[Enum], number: int, where: str) -> Enum:
    """The member with this number. A newer peer may know more members: to us that is an error of the message."""
    try:
        return kind(number)
    except ValueError as error:
        raise DecodeError(where, f"{number} is no {kind.__name__}") from error


def absent(where: str) -> Never:
    """Raise for a field that the schema marks as required and that the bytes do not hold."""
    raise DecodeError(where, "absent, and required")
