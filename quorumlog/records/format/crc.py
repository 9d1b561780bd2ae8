"""CRC-32C (Castagnoli), the checksum of batches, producer snapshots and quorum-state.

Uses google-crc32c if its compiled form is installed (34 GB/s here), otherwise crcmod (0.5 GB/s compiled; its
pure-Python form is a thousand times slower and warns once). Both are tested with known answers at import, because a
machine whose checksum instruction is wrong must not write a log.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING

import crcmod.predefined as crcmod_predefined

from quorumlog.records.format.buffers import Buffer

if TYPE_CHECKING:
    from collections.abc import Callable

# google-crc32c takes bytes only. Other buffers are copied in pieces that fit into the second-level cache. This costs a
# third of the speed and almost no memory; copying the whole buffer at once would cost both.
COPY_BYTES = 64 * 1024

KNOWN_ANSWERS = (
    (b"", 0x00000000),
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (bytes(range(32)), 0x46DD794E),
)


def _crcmod_form() -> Callable[[int, bytes], int]:
    function = crcmod_predefined.mkPredefinedCrcFun("crc-32c")

    def extend(crc: int, data: bytes) -> int:
        return int(function(data, crc))

    return extend


def _fastest_form() -> tuple[Callable[[int, bytes], int], str]:
    """The function (checksum so far, more bytes) -> checksum, and the name of the implementation."""
    try:
        import google_crc32c
    except ImportError:
        pass
    else:
        if google_crc32c.implementation == "c":
            return google_crc32c.extend, "google-crc32c"
    if find_spec("crcmod._crcfunext") is None:
        warnings.warn(
            "CRC-32C is computed by crcmod's pure-Python form, about 1,000 times slower than compiled: "
            "install google-crc32c, or a compiler and then crcmod",
            RuntimeWarning,
            stacklevel=2,
        )
    return _crcmod_form(), "crcmod"


def _check(forms: tuple[Callable[[int, bytes], int], ...]) -> None:
    for data, want in KNOWN_ANSWERS:
        for form in forms:
            got = form(0, data)
            assert got == want, f"CRC-32C of {data!r} is {got:#010x} on this machine, not {want:#010x}"


_extend, IMPLEMENTATION = _fastest_form()
_check((_extend, _crcmod_form()))


def crc32c(data: Buffer, crc: int = 0) -> int:
    """Checksum of `data`, continued from `crc`, the checksum of the preceding bytes (0 at the start).

    `bytes` are read in place, other buffers are copied in pieces of COPY_BYTES.
    """
    if isinstance(data, bytes):
        return _extend(crc, data)
    if len(data) <= COPY_BYTES:
        return _extend(crc, bytes(data))
    view = memoryview(data)
    for start in range(0, len(view), COPY_BYTES):
        crc = _extend(crc, bytes(view[start : start + COPY_BYTES]))
    return crc
