"""The canonical bytes of a value, the same in every process and version. The state hash is computed over them.

Protobuf promises no canonical form. In this one a value is a tag, its length where one is needed, and its bytes.
"""

from __future__ import annotations

from hashlib import blake2b

Value = None | bool | int | str | bytes | tuple["Value", ...]

HASH_BYTES = 16
MODULUS = 1 << 8 * HASH_BYTES
_KEY = b"quorumlog metadata image"


def entry_hash(key: tuple[Value, ...], value: Value) -> int:
    """Hash of one entry of an image, below MODULUS. Entries are summed, so that order does not matter."""
    out = bytearray()
    _write(out, (key, value))
    return int.from_bytes(blake2b(bytes(out), digest_size=HASH_BYTES, key=_KEY).digest(), "big")


def _write(out: bytearray, value: Value) -> None:
    match value:
        case None:
            out += b"n"
        case bool():
            out += b"t" if value else b"f"
        case int():
            _write_sized(out, b"i", str(value).encode("ascii"))
        case str():
            _write_sized(out, b"s", value.encode("utf-8"))
        case bytes():
            _write_sized(out, b"b", value)
        case tuple():
            out += b"(%d:" % len(value)
            for part in value:
                _write(out, part)


def _write_sized(out: bytearray, tag: bytes, data: bytes) -> None:
    out += tag + b"%d:" % len(data) + data
