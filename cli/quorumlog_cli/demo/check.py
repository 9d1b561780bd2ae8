"""The proof: every acknowledged row is in the topic, every record is accounted for, and Spark's figures equal
the CSV's.

Pure. Rule: an acknowledged row is stored at the acknowledged position, byte for byte, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from quorumlog_cli.demo.flights import Figures
from quorumlog_cli.demo.load import Loaded
from quorumlog_cli.demo.spark import Stored

_OFFSET_BITS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Counts of rows. doubled: intact records at a position that was not acknowledged. The last four must be 0."""

    sent: int
    acknowledged: int
    stored: int
    unacknowledged: int
    missing: int
    damaged: int
    doubled: int

    @property
    def faults(self) -> list[str]:
        texts = {
            "unacknowledged": "rows were not acknowledged",
            "missing": "acknowledged rows are missing from their positions",
            "damaged": "records differ from what was sent",
            "doubled": "records are at a position that was not acknowledged for them",
        }
        return [f"{getattr(self, name):,} {text}" for name, text in texts.items() if getattr(self, name)]


def account(loaded: Loaded, stored: Stored, checksums: Any) -> Account:
    """checksums: of every row, as sent."""
    sent = len(checksums)
    known = (stored.rows >= 0) & (stored.rows < sent)
    rows = np.where(known, stored.rows, 0)
    whole = known & (stored.checksums == checksums[rows])
    at_place = whole & (stored.partitions == loaded.partitions[rows]) & (stored.offsets == loaded.offsets[rows])
    places = _places(stored.partitions, stored.offsets)
    first_of_place = np.zeros(len(stored), np.bool_)
    first_of_place[np.unique(places, return_index=True)[1]] = True
    acknowledged = loaded.partitions >= 0
    found = np.zeros(sent, np.bool_)
    found[rows[at_place]] = True
    copies = whole & ~(at_place & first_of_place)
    return Account(
        sent=sent,
        acknowledged=int(acknowledged.sum()),
        stored=len(stored),
        unacknowledged=int((~acknowledged).sum()),
        missing=int((acknowledged & ~found).sum()),
        damaged=int((~whole).sum()),
        doubled=int(copies.sum()),
    )


def differences(ours: Mapping[str, Figures], sparks: Mapping[str, Figures]) -> list[str]:
    """One text per carrier whose figures differ, compared to the last bit."""
    carriers = sorted({*ours, *sparks})
    return [
        f"{carrier}: the CSV has {ours.get(carrier)}, Spark {sparks.get(carrier)}"
        for carrier in carriers
        if ours.get(carrier) != sparks.get(carrier)
    ]


def _places(partitions: Any, offsets: Any) -> Any:
    return (partitions.astype(np.int64) << _OFFSET_BITS) | offsets
