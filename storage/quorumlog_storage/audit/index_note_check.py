"""`transaction-index-checkpoint`: how many entries each `.txnindex` of a log has, and their checksum (ours)."""

from __future__ import annotations

from quorumlog.ids import Offset
from quorumlog.records.crc import crc32c
from quorumlog_storage.audit.entries import TRANSACTION_ENTRY
from quorumlog_storage.audit.files import TRANSACTION_INDEX, file_name
from quorumlog_storage.audit.finding import Findings
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint, parse_checkpoint, parse_number


def check_index_note(disk: Disk, directory: str, name: str, bases: list[Offset], findings: Findings) -> None:
    """bases: of the log's segments. Where note and index disagree, the index is made again. Raises DiskError."""
    path = f"{directory}/{name}"
    try:
        lines = parse_checkpoint(path, disk.read_bytes(path))
        noted = [[parse_number(path, number, word) for word in words] for number, words in enumerate(lines, 3)]
    except CorruptCheckpoint as error:
        findings.add("txnindex-note", path, expected="a line for each index", found=error.reason)
        return
    for words in noted:
        if len(words) != 3 or words[0] not in bases:
            findings.add("txnindex-note", path, expected="a segment's base, entries and checksum", found=str(words))
            continue
        base, entries, checksum = words
        try:
            content = disk.read_bytes(f"{directory}/{file_name(base, TRANSACTION_INDEX)}")
        except FileMissing:
            content = b""
        found = (len(content) // TRANSACTION_ENTRY.size, crc32c(content))
        if found != (entries, checksum):
            text = f"{entries} entries with checksum {checksum:#010x}"
            is_there = f"{found[0]} with {found[1]:#010x}"
            findings.add("txnindex-note", path, offset=base, expected=text, found=is_there)
