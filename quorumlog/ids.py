"""Type aliases that say what an int or bytes means in a signature.

Plain aliases, not NewTypes: they cost nothing at run time, and literals can be passed. Identifiers of 16 bytes
(cluster, directory, topic, incarnation) are `bytes` inside messages. They are printed as in Kafka: base64url without
padding, 22 characters.
"""

from __future__ import annotations

import base64
import binascii

NodeId = int  # of a controller or broker, >= 0; -1 is "none"
Epoch = int  # leader epoch, of the quorum or of a partition; -1 is "none"
Offset = int  # position of a record in a log; an *end* offset is exclusive
BrokerEpoch = int  # metadata offset of the registration record; -1 is "none"
Uuid = bytes  # exactly 16 bytes
TopicPartition = tuple[str, int]  # a topic's name, a partition's index

NO_NODE: NodeId = -1
NO_EPOCH: Epoch = -1

UUID_BYTES = 16
ZERO_UUID: Uuid = bytes(UUID_BYTES)
RESERVED_UUIDS = 100  # no directory has one of the first hundred numbers as its id (KIP-858)


def format_uuid(value: Uuid) -> str:
    """Kafka's text form of a 16-byte identifier: 22 characters of base64url."""
    assert len(value) == UUID_BYTES
    return base64.urlsafe_b64encode(value).decode("ascii").rstrip("=")


def show_uuid(value: bytes) -> str:
    """A received identifier, for a message: the text form, or hexadecimal if its length is wrong."""
    return format_uuid(value) if len(value) == UUID_BYTES else f"0x{value[:UUID_BYTES].hex()}"


def parse_uuid(text: str) -> Uuid:
    """The inverse of `format_uuid`. Raises ValueError for anything else."""
    try:
        value = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"not an identifier of 22 base64url characters: {text!r}") from error
    if len(text) != 22 or len(value) != UUID_BYTES:
        raise ValueError(f"not an identifier of 22 base64url characters: {text!r}")
    return value
