"""The canonical bytes of a value, the same in every process and version. The state hash is computed over them.

Protobuf promises no canonical form, so this is our own. An entry of an image is encoded in one of two ways:

- `entry_hash`: any value. It is a tag, its length where one is needed, and its bytes.
- `packed_hash`: numbers and identifiers of 16 bytes, packed in one call. Partitions use it, because fencing a broker
  hashes each of its partitions.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from struct import Struct

Value = None | bool | int | str | bytes | tuple["Value", ...]

HASH_BYTES = 16
MODULUS = 1 << 8 * HASH_BYTES
_EMPTY = blake2b(digest_size=HASH_BYTES, key=b"quorumlog metadata image")


def entry_hash(key: tuple[Value, ...], value: Value) -> int:
    """Hash of one entry of an image, below MODULUS. Entries are summed, so that order does not matter."""
    out = bytearray()
    _write(out, (key, value))
    return _hash(bytes(out))


def setting_hash(resource_type: int, resource_name: str, name: str, value: str) -> int:
    """`entry_hash(("config", resource_type, resource_name, name), value)` at a third of its cost: settings are changed
    by the thousand."""
    number, resource = b"%d" % resource_type, resource_name.encode("utf-8")
    key, text = name.encode("utf-8"), value.encode("utf-8")
    sizes = (len(number), len(resource), len(key), len(text))
    return _hash(
        b"(2:(4:s6:configi%d:%bs%d:%bs%d:%bs%d:%b"
        % (sizes[0], number, sizes[1], resource, sizes[2], key, sizes[3], text)
    )


def packed_hash(kind: bytes, numbers: tuple[int, ...], ids: tuple[bytes, ...]) -> int:
    """Hash of one entry of an image, below MODULUS.

    kind: sets the kinds of entries apart, and their encoding from that of `entry_hash`; does not begin with "(".
    numbers: signed, 64 bits each. ids: 16 bytes each. Different entries of one kind give different numbers or ids; the
    caller puts the lengths of its lists among the numbers.
    """
    prefix, packer = _packer(kind, len(numbers), len(ids))
    return _hash(packer.pack(prefix, *numbers, *ids))


@cache
def _packer(kind: bytes, numbers: int, ids: int) -> tuple[bytes, Struct]:
    """One per form of an entry: what its bytes begin with, and what packs them.

    There are few forms: a partition's depends on its numbers of replicas only.
    """
    prefix = b"%b %d %d:" % (kind, numbers, ids)
    return prefix, Struct(f">{len(prefix)}s{numbers}q{'16s' * ids}")


def _hash(data: bytes) -> int:
    """Copies a keyed, empty hash, which is cheaper than making one."""
    state = _EMPTY.copy()
    state.update(data)
    return int.from_bytes(state.digest(), "big")


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
