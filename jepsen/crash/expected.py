"""What a log must hold and what it may hold, by everything that was asked of it and everything that was acknowledged.

A record is known by its log's tag, its offset and its epoch: its payload is made of these, and of nothing else. So an
(offset, epoch) that were assigned twice, a record that nobody sent, and a record of another topic all show.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quorumlog.ids import Epoch, Offset

FILLER = b"." * 24


def payload(tag: str, offset: Offset, epoch: Epoch) -> bytes:
    return f"{tag}-{offset}-{epoch}".encode() + FILLER


@dataclass
class Expected:
    """One log of one topic id.

    must: epochs of the records that are acknowledged and that nobody has asked to remove, by offset. may: epochs of
    all records that were ever sent there and not removed for certain. start_at_least, start_at_most: where the log may
    start. is_new: False once its creation was acknowledged. steps: of transactions, by offset and epoch, as
    jepsen/crash/workloads/transactions.py writes them; empty for a log without.
    """

    tag: str
    is_copy: bool = False  # a follower fills it: nobody reads it meanwhile
    must: dict[Offset, Epoch] = field(default_factory=dict)
    may: dict[Offset, list[Epoch]] = field(default_factory=dict)
    start_at_least: Offset = 0
    start_at_most: Offset = 0
    steps: dict[tuple[Offset, Epoch], str] = field(default_factory=dict)

    # --- an append ---

    def sent(self, base: Offset, count: int, epoch: Epoch) -> None:
        for offset in range(base, base + count):
            held = self.may.setdefault(offset, [])
            assert epoch not in held, f"the sweep itself sends ({offset}, {epoch}) twice"
            held.append(epoch)

    def acknowledged(self, base: Offset, count: int, epoch: Epoch) -> None:
        for offset in range(base, base + count):
            self.must[offset] = epoch
            self.may[offset] = [epoch]

    # --- a truncation: everything from an offset on goes ---

    def cut_asked(self, offset: Offset) -> None:
        self.must = {at: epoch for at, epoch in self.must.items() if at < offset}

    def cut_done(self, offset: Offset) -> None:
        self.cut_asked(offset)
        self.may = {at: epochs for at, epochs in self.may.items() if at < offset}

    # --- deleted records: everything before an offset goes ---

    def start_asked(self, offset: Offset) -> None:
        self.must = {at: epoch for at, epoch in self.must.items() if at >= offset}
        self.start_at_most = max(self.start_at_most, offset)

    def start_done(self, offset: Offset) -> None:
        self.start_asked(offset)
        self.start_at_least = max(self.start_at_least, offset)

    def seen(self, start: Offset, records: dict[Offset, Epoch]) -> None:
        """After a start that was found right: what is there now has been synced, so it stays."""
        self.start_at_least = self.start_at_most = start
        self.must = dict(records)
        self.may = {offset: [epoch] for offset, epoch in records.items()}
