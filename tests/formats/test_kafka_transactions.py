"""The transactions that Apache Kafka 4.3.1 wrote: our index is its bytes, and a read_committed reader gets its records.

Records reach the reader as they do over the wire: whole batches below the last stable offset, the aborted transactions
that the log tells with them, and the client's filter.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from quorumlog.client.fetching.position import committed_batches
from quorumlog.records import headers
from quorumlog_broker.fetch.partition_read import told
from quorumlog_storage.log.log import Log
from quorumlog_storage.producers.producer_snapshot import decode_snapshot, encode_snapshot
from quorumlog_storage.producers.transactions import NEVER
from tests.formats.kafka_directory import (
    READ_COMMITTED,
    FoundBatch,
    must_be_what_kafka_read,
    open_partition,
    rows_of,
    unpack_kafka,
)
from tests.rules import rule

PARTITIONS = ("txn-0", "txn-1")
READS = [500, 1 << 20]  # bytes at once


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return unpack_kafka(tmp_path)


def read_committed(log: Log, max_bytes: int) -> list[FoundBatch]:
    found: list[FoundBatch] = []
    assert log.view.unstable.first(log.end_offset) == NEVER
    offset = log.start_offset
    while offset < log.end_offset:
        part = log.read_part(offset, max_bytes, upper_bound=log.end_offset, committed=True)
        batches = headers(part.data)
        kept = committed_batches(part.data, batches, told(part.aborted))
        found += [(header, part.data) for header in kept]
        offset = batches[-1].next_offset
    return found


@rule("storage 5.4")
@pytest.mark.parametrize("max_bytes", READS)
@pytest.mark.parametrize("index", ["kafka's", "damaged", "lost", "lost later"])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_read_committed_consumer_gets_what_kafkas_got(partition: str, index: str, max_bytes: int, data: Path) -> None:
    (path,) = (data / partition).glob("*.txnindex")
    if index == "damaged":
        content = bytearray(path.read_bytes())
        content[17] ^= 1
        path.write_bytes(content)
    elif index != "kafka's":
        if index == "lost later":
            open_partition(data, partition, clean=True).close()
        path.unlink()
    log = open_partition(data, partition, clean=True).log
    must_be_what_kafka_read(f"{partition}/{READ_COMMITTED}", rows_of(read_committed(log, max_bytes)))


@rule("log 5.6")
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "scanned"])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_transaction_index_that_we_build_is_kafkas_bytes(partition: str, clean: bool, data: Path) -> None:
    (path,) = (data / partition).glob("*.txnindex")
    theirs = path.read_bytes()
    if not clean:
        path.unlink()
        (data / "recovery-point-offset-checkpoint").unlink()
    opened = open_partition(data, partition, clean=clean)
    assert opened.log.producers is not None
    ours = opened.log.producers.aborted_in(opened.log.view.segments, 0)
    opened.close()
    assert len(ours) * 34 == len(theirs)
    assert path.read_bytes() == theirs


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_snapshot_of_kafkas_that_is_read_and_written_is_kafkas_bytes(partition: str, data: Path) -> None:
    (path,) = (data / partition).glob("*.snapshot")
    assert encode_snapshot(decode_snapshot(str(path), path.read_bytes())) == path.read_bytes()


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_newest_row_that_a_replay_writes_is_kafkas(partition: str, data: Path) -> None:
    """We write the older batches of a producer in rows before it (docs/decisions/0003)."""
    (path,) = (data / partition).glob("*.snapshot")
    theirs = path.read_bytes()
    path.unlink()
    log = open_partition(data, partition, clean=True).log
    assert log.producers is not None
    ours = encode_snapshot(log.producers.states.entries)
    assert ours[-46:] == theirs[-46:]
