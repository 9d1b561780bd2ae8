"""The voter sets of the metadata log, by the offsets of the records that made them (KIP-853).

- A set is in force as soon as its record is appended, committed or not. Truncation of the record reverts it.
- Before the first record, the set is the static one (`controller.quorum.voters`) and kraft.version is 0. Records of the
  bootstrap checkpoint stand at BOOTSTRAP, before every record of the log.
- A snapshot that ends at an offset holds what was in force there; nothing older is needed then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records.control import KRaftVersion, Voters
from quorumlog_quorum.raft.voter_records import set_of
from quorumlog_quorum.raft.voters import VoterKey, VoterSet

BOOTSTRAP: Offset = -1  # the offset of the records in the bootstrap checkpoint
_AFTER_ALL: Offset = 2**63 - 1
STATIC_LEVEL = 0  # of kraft.version: the voters are in the configuration
DYNAMIC_LEVEL = 1  # the voters are in the log


class MembershipRecord(NamedTuple):
    """A control record about the voters, and where it stands in the log."""

    offset: Offset
    record: KRaftVersion | Voters


class VoterHistory:
    def __init__(self, static: VoterSet, records: Iterable[MembershipRecord] = ()) -> None:
        """static: the set of the configuration; it may be empty. records: ascending by offset."""
        self._static = static
        self._records: list[MembershipRecord] = []
        self.voters, self.level = static, STATIC_LEVEL  # in force
        for record in records:
            self.add(record)

    @property
    def offset(self) -> Offset | None:
        """Of the record that made the set in force; None: it is the static one."""
        return next((found.offset for found in reversed(self._records) if isinstance(found.record, Voters)), None)

    @property
    def last_offset(self) -> Offset | None:
        """Of the last record of either kind; None: there is none."""
        return self._records[-1].offset if self._records else None

    @property
    def needs_writing(self) -> bool:
        """Whether the voters are known from the bootstrap checkpoint alone: the first leader writes them to the log."""
        return self.last_offset == BOOTSTRAP

    @property
    def held(self) -> tuple[KRaftVersion | Voters, ...]:
        """The records in force."""
        return tuple(record for record in self.at(_AFTER_ALL) if record is not None)

    def is_leaving(self, key: VoterKey, high_watermark: Offset) -> bool:
        """Whether the last set removes this voter, as far as is known without a commit. high_watermark: exclusive."""
        offset = self.offset
        if offset is None or offset < high_watermark or self.voters.names(key):
            return False
        before = self.at(offset)[1]
        return (self._static if before is None else set_of(before)).names(key)

    def at(self, end_offset: Offset) -> tuple[KRaftVersion | None, Voters | None]:
        """The records in force below end_offset (exclusive), as a snapshot that ends there holds them."""
        version: KRaftVersion | None = None
        voters: Voters | None = None
        for found in self._records:
            if found.offset >= end_offset:
                break
            if isinstance(found.record, KRaftVersion):
                version = found.record
            else:
                voters = found.record
        return version, voters

    def add(self, record: MembershipRecord) -> None:
        last = self.last_offset
        assert last is None or record.offset > last or record.offset == BOOTSTRAP == last, f"{record} after {last}"
        self._records.append(record)
        self._find_latest()

    def truncate(self, end_offset: Offset) -> None:
        """Forget the records at and after end_offset."""
        self._records = [found for found in self._records if found.offset < end_offset]
        self._find_latest()

    def trim(self, start_offset: Offset) -> None:
        """The log starts here now, and a snapshot holds what is below: keep of that the newest of each kind."""
        below = [found for found in self._records if found.offset < start_offset]
        kept = {type(found.record): found for found in below}
        self._records = sorted(kept.values(), key=lambda found: found.offset) + self._records[len(below) :]

    def restart(self, end_offset: Offset, version: KRaftVersion | None, voters: Voters | None) -> None:
        """A snapshot that ends at end_offset has replaced the log. None: it holds no such record."""
        held = [record for record in (version, voters) if record is not None]
        first = end_offset - len(held)
        self._records = [MembershipRecord(first + index, record) for index, record in enumerate(held)]
        self._find_latest()

    def _find_latest(self) -> None:
        self.voters, self.level = self._static, STATIC_LEVEL
        for _, record in self._records:
            if isinstance(record, KRaftVersion):
                self.level = record.level
            else:
                self.voters = set_of(record)
