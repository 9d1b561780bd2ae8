"""The names of numbers: what an int means where one appears in a signature.

Plain aliases, not NewTypes: they cost nothing at run time and a literal may be passed. Identifiers of 16 bytes
(cluster, directory, topic, incarnation) are `uuid.UUID`-sized `bytes` inside messages and print as Kafka prints
them: base64url without padding, 22 characters (FORMATS 4.6).
"""

from __future__ import annotations

import base64
import binascii

NodeId = int  # of a controller or broker, >= 0; -1 is "none"
Epoch = int  # leader epoch, of the quorum or of a partition; -1 is "none"
Offset = int  # position of a record in a log; an *end* offset is exclusive
BrokerEpoch = int  # metadata offset of the registration record; -1 is "none"
Uuid = bytes  # exactly 16 bytes

NO_NODE: NodeId = -1
NO_EPOCH: Epoch = -1

UUID_BYTES = 16
ZERO_UUID: Uuid = bytes(UUID_BYTES)


def format_uuid(value: Uuid) -> str:
    """16 bytes as 22 characters of base64url, Kafka's text form of an identifier."""
    assert len(value) == UUID_BYTES
    return base64.urlsafe_b64encode(value).decode("ascii").rstrip("=")


def show_uuid(value: bytes) -> str:
    """For a message about what a peer sent as an identifier: hexadecimal where it is none."""
    return format_uuid(value) if len(value) == UUID_BYTES else f"0x{value[:UUID_BYTES].hex()}"


def parse_uuid(text: str) -> Uuid:
    """The inverse of `format_uuid`. Raises ValueError unless `text` is exactly such a form."""
    try:
        value = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"not an identifier of 22 base64url characters: {text!r}") from error
    if len(text) != 22 or len(value) != UUID_BYTES:
        raise ValueError(f"not an identifier of 22 base64url characters: {text!r}")
    return value
