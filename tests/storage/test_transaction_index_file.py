"""The file of a transaction index as its segment grows: what it holds, what it must make again, what it writes."""

from __future__ import annotations

from collections.abc import Sequence

from jepsen.sim.machine.disk import SimDisk
from quorumlog_storage.segment.log_file import LogFile
from quorumlog_storage.segment.transaction_index import AbortedTransaction, TransactionIndexFile, decode_entries
from tests.rules import rule

FIRST, SECOND = AbortedTransaction(7, 1, 4, 5), AbortedTransaction(8, 6, 9, 10)
PATH = "/d/00000000000000000000.txnindex"


def index_on(disk: SimDisk) -> TransactionIndexFile:
    """Of a segment that a start has found: nothing of it is in memory."""
    if not disk.exists("/d"):
        disk.make_directory("/d")
    log = LogFile(disk, "/d/00000000000000000000.log")
    return TransactionIndexFile(disk, PATH, 0, log)


def on_disk(disk: SimDisk) -> Sequence[AbortedTransaction]:
    return decode_entries(disk.read_bytes(PATH))


@rule("log 5.6")
def test_the_first_entry_needs_no_file() -> None:
    disk = SimDisk()
    index = index_on(disk)
    index.add([FIRST])
    assert not index.must_build and index.entries() == [FIRST]
    index.flush()
    assert on_disk(disk) == [FIRST]


def test_entries_behind_one_that_is_lost_do_not_make_it_whole() -> None:
    """The file went after it was noted that there are entries: what markers add later is not all."""
    disk = SimDisk()
    index = index_on(disk)
    index.add([FIRST])
    index.flush()
    again = index_on(disk)
    assert again.has_entries
    disk.unlink(PATH)
    again.add([SECOND])
    assert again.must_build
    again.add([SECOND])
    assert again.must_build, "only the producer state knows the first one"
    again.flush()
    assert not disk.exists(PATH)
    again.replace([FIRST, SECOND])
    again.flush()
    assert not again.must_build and on_disk(disk) == [FIRST, SECOND]
