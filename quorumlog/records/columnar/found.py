"""What a decoder is given and what it finds, the same for the compiled and the vectorised one.

Positions are bytes from the start of the payload that all batches of a call share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from quorumlog.records.columnar.arrow import Numbers

VARINT_BITS = 32
VARLONG_BITS = 64
MAX_INT64 = 2**63 - 1
NOT_APPEND_TIME = -(2**63)

# The fault that `scan` found in the batch that it names.
GOOD, BAD_RECORD, BAD_OFFSET, BAD_TIMESTAMP, LEFT_OVER = range(5)


class Batches(NamedTuple):
    """Per batch: the position of its records in the payload, and the header's data about them."""

    starts: Numbers
    ends: Numbers  # exclusive
    counts: Numbers
    base_offsets: Numbers
    last_offsets: Numbers
    base_timestamps: Numbers
    append_timestamps: Numbers  # of every record; NOT_APPEND_TIME if each has its own timestamp


class Rows(NamedTuple):
    """Filled by `scan`, per row in range. Lengths are -1 for null."""

    offsets: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    key_starts: NDArray[np.int64]
    key_lengths: NDArray[np.int32]
    value_starts: NDArray[np.int64]
    value_lengths: NDArray[np.int32]
    header_starts: NDArray[np.int64]  # of the first header, after their count
    header_counts: NDArray[np.int32]
    sizes: NDArray[np.int32]  # bytes of the whole record, its length included, before compression


class Totals(NamedTuple):
    """The result of `scan`: the amount to gather, or the faulty batch and its fault."""

    rows: int
    key_bytes: int
    value_bytes: int
    null_keys: int
    null_values: int
    header_entries: int
    header_bytes: int  # of names and values together
    fault: int
    batch: int
