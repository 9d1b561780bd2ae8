"""What a parser may allocate: 4 times the input plus 64 KiB, and an object for each entry where callers ask for it.

A Python object of a line or a record takes some hundred bytes, whatever parses it. So the parsers below cannot stay
within 4 times an input of short entries. What holds for them: an object is made only for an entry whose bytes are
there (a count that the input states allocates nothing), there is nothing beside these objects, and a named limit bounds
the input, so the memory is bounded, too. Every other parser yields its entries one at a time, or keeps them in arrays,
or reads a file whose size is limited so far down that the rule holds (quorum-state, the markers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from quorumlog.records import CorruptRecords, iter_headers
from quorumlog.records.format.batch import BATCH_OVERHEAD

FACTOR = 4
ALLOWANCE_BYTES = 64 * 1024
LIMIT_BYTES = 8 * 1024  # of decompressed records
SHORTEST_RECORD = 7
SHORTEST_OLD_RECORD = 26
STEP_BYTES = 1 << 20  # compression.py: the largest output of one step of a decompressor that has no lower limit
SNAPSHOT_ROW, ABORTED_ROW = 46, 34
ELEMENT = 2  # the shortest that is no shared object of Python


class Objects(NamedTuple):
    """count: how many objects the input asks for at most. each_bytes: of one, with the values in it, and its place in
    what holds it. limit: what bounds an input, as `file NAME`. buffer_bytes: of a buffer of a fixed size."""

    count: Callable[[bytes], int]
    each_bytes: int
    limit: str
    buffer_bytes: int = 0


def most_bytes(name: str, data: bytes) -> int:
    """What the parser of this name may allocate."""
    objects = OBJECTS.get(name)
    more = 0 if objects is None else objects.each_bytes * objects.count(data) + objects.buffer_bytes
    return FACTOR * len(data) + ALLOWANCE_BYTES + more


def lines(data: bytes) -> int:
    return data.count(b"\n") + data.count(b"\r") + 1


def batches(data: bytes) -> int:
    return len(data) // BATCH_OVERHEAD + len(data) // SHORTEST_OLD_RECORD * (data[16:17] < b"\2") + 1


def records_of_a_batch(data: bytes) -> int:
    """Of the batch with the most records; a decoder lets go of one before it reads the next."""
    most = 1
    try:
        for header in iter_headers(data):
            room = max(header.size, LIMIT_BYTES)
            is_old = header.magic < 2
            most = max(most, room // SHORTEST_OLD_RECORD if is_old else min(header.count, room // SHORTEST_RECORD))
    except CorruptRecords:
        pass
    return most


def rows(size: int) -> Callable[[bytes], int]:
    return lambda data: len(data) // size + 1


CHECKPOINT = "storage/quorumlog_storage/files/text_checkpoint.py MAX_CHECKPOINT_BYTES"
PROPERTIES = "storage/quorumlog_storage/files/properties.py MAX_PROPERTIES_BYTES"
MESSAGE = "quorumlog/rpc/transport.py MAX_MESSAGE_BYTES_DEFAULT"  # socket.request.max.bytes
DECOMPRESSED = "quorumlog/records/format/compression.py DEFAULT_MAX_DECOMPRESSED_BYTES"
INDEX = "storage/quorumlog_storage/segment/log_config.py segment_index_bytes"

CERTIFICATE = "quorumlog/security/tls/peer.py MAX_CERTIFICATE_BYTES"
RULES = "quorumlog/security/tls/mapping.py MAX_CHARACTERS"
PEM = "quorumlog/security/tls/pem.py MAX_BYTES"
SHORTEST_BLOCK = 40
SHORTEST_ELEMENT = 2

OBJECTS: dict[str, Objects] = {
    "quorumlog/security/tls/pem.py read_blocks": Objects(rows(SHORTEST_BLOCK), 400, PEM),
    "quorumlog/security/tls/distinguished_name.py read_name": Objects(rows(SHORTEST_ELEMENT), 250, CERTIFICATE),
    "quorumlog/security/tls/mapping.py parse_rules": Objects(rows(len("RULE:a//,")), 4_000, RULES),
    "quorumlog/security/tls/peer.py read_subject": Objects(rows(SHORTEST_ELEMENT), 250, CERTIFICATE),
    "quorumlog/security/tls/peer.py read_alternative_names": Objects(rows(SHORTEST_ELEMENT), 250, CERTIFICATE),
    "quorumlog/security/tls/peer.py read_not_after_ms": Objects(rows(SHORTEST_ELEMENT), 250, CERTIFICATE),
    "storage/quorumlog_storage/rules/epochs.py LeaderEpochCache.parse": Objects(lines, 160, CHECKPOINT),
    "storage/quorumlog_storage/directory/offset_files.py parse_offsets": Objects(lines, 400, CHECKPOINT),
    "storage/quorumlog_storage/files/properties.py parse_properties": Objects(lines, 400, PROPERTIES),
    "storage/quorumlog_storage/directory/meta_properties.py MetaProperties.parse": Objects(lines, 400, PROPERTIES),
    "storage/quorumlog_storage/segment/transaction_index.py decode_entries": Objects(rows(ABORTED_ROW), 300, INDEX),
    "storage/quorumlog_storage/producers/producer_snapshot.py decode_snapshot": Objects(rows(SNAPSHOT_ROW), 700, INDEX),
    "storage/quorumlog_storage/audit/entries.py read_snapshot": Objects(rows(SNAPSHOT_ROW), 450, INDEX),
    "storage/quorumlog_storage/segment/batch.py received_batches": Objects(batches, 900, MESSAGE),
    "quorum/quorumlog_quorum/disk/metadata_log.py checked_spans": Objects(batches, 900, MESSAGE),
    "quorumlog/records/format/batch.py headers": Objects(batches, 600, MESSAGE),
    "quorumlog/records/validation/produced.py validate_produced": Objects(batches, 900, MESSAGE),
    "quorum/quorumlog_quorum/metadata/frame.py decode_record": Objects(rows(ELEMENT), 80, MESSAGE),
    "quorum/quorumlog_quorum/metadata/partition_values.py PartitionReader.read": Objects(rows(ELEMENT), 80, MESSAGE),
    "quorumlog/records/coordinator/decode.py decode": Objects(rows(ELEMENT), 80, MESSAGE),
    "quorumlog/records/coordinator/layout.py Layout.decode": Objects(rows(ELEMENT), 80, MESSAGE),
    "quorumlog/records/coordinator/layout.py Layout.decode_sliced": Objects(rows(ELEMENT), 80, MESSAGE),
    "quorumlog/records/rowwise/plain.py decode_batch": Objects(records_of_a_batch, 400, DECOMPRESSED),
    "quorumlog/records/rowwise/plain.py decode_fields": Objects(records_of_a_batch, 400, DECOMPRESSED),
    "quorumlog/records/format/legacy.py decode_entry": Objects(records_of_a_batch, 400, DECOMPRESSED),
    "storage/quorumlog_storage/cleaning/record_table.py RecordTable.read": Objects(
        records_of_a_batch, 80, DECOMPRESSED, STEP_BYTES
    ),
    "storage/quorumlog_storage/foreign/kafka_metadata.py _Settings.take": Objects(
        records_of_a_batch, 400, DECOMPRESSED
    ),
}
