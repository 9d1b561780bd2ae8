"""The entries of index files, one by one, each with what is wrong with it: a merge of the index and its log.

The checks are the auditor's; here each entry is shown, too. Memory does not grow with the files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Any

from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_storage.audit.entries import OFFSET_ENTRY, TIME_ENTRY, TRANSACTION_ENTRY, read_entries
from quorumlog_storage.audit.file_audit import audit_file
from quorumlog_storage.audit.finding import Finding
from quorumlog_storage.audit.log_audit import LogReport
from quorumlog_storage.edge.read_only_disk import ReadOnlyDisk

FORMS: dict[str, tuple[Struct, tuple[str, ...]]] = {
    ".index": (OFFSET_ENTRY, ("offset", "position")),
    ".timeindex": (TIME_ENTRY, ("timestamp", "offset")),
    ".txnindex": (
        TRANSACTION_ENTRY,
        ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset"),
    ),
}


def index_files(paths: list[Path]) -> list[Path]:
    """The index files among these paths, and those in the directories among them. Raises CliError(NOT_FOUND)."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(one for one in path.iterdir() if one.suffix in FORMS)
        elif path.is_file() and path.suffix in FORMS:
            found.append(path)
        elif path.exists():
            raise CliError(Exit.USAGE, f"{path} is no index file", "an index ends with .index, .timeindex or .txnindex")
        else:
            raise CliError(Exit.NOT_FOUND, f"{path}: no such file or directory")
    if not found:
        raise CliError(
            Exit.NOT_FOUND, f"no index file in {', '.join(map(str, paths))}", "indexes are built when needed"
        )
    return found


def base_of(path: Path) -> int:
    """Raises CliError(USAGE)."""
    if not (path.stem.isascii() and path.stem.isdigit() and len(path.stem) == 20):
        raise CliError(Exit.USAGE, f"{path}: the name of an index must be the 20 digits of its base offset")
    return int(path.stem)


def read_index(path: Path) -> tuple[Iterator[dict[str, Any]], LogReport]:
    """(entries with absolute offsets, the audit of the file). An entry's `problem` is "" if it is right.

    Raises CliError(USAGE) for another name, FileMissing.
    """
    base = base_of(path)
    report = audit_file(ReadOnlyDisk(), str(path))
    faults = {fault.position: fault for fault in report.findings.faults if fault.position is not None}
    return _entries(path, base, faults), report


def _entries(path: Path, base: int, faults: dict[int, Finding]) -> Iterator[dict[str, Any]]:
    form, names = FORMS[path.suffix]
    file = ReadOnlyDisk().open(str(path))
    try:
        for at, fields in read_entries(file, file.size(), form):
            entry: dict[str, Any] = dict(zip(names, fields, strict=True))
            if path.suffix != ".txnindex":
                entry["offset"] += base
            fault = faults.get(at)
            entry["problem"] = "" if fault is None else f"{fault.check}: expected {fault.expected}, found {fault.found}"
            yield entry
    finally:
        file.close()
