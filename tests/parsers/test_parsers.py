"""Every parser of bytes is fuzzed, and none is forgotten."""

from __future__ import annotations

import re
from struct import Struct

import pytest

from quorumlog.messages.metadata_records import PartitionRecord
from quorumlog.records import Codec, Record, encode_batch
from quorumlog.records.format.batch import BATCH_OVERHEAD
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_quorum.offline.lost_majority import RecoveryRefused
from quorumlog_storage.files.text_checkpoint import render_checkpoint
from quorumlog_storage.producers.producer_snapshot import encode_snapshot
from quorumlog_storage.producers.producer_state import ProducerEntry, Remembered
from quorumlog_storage.segment.transaction_index import AbortedTransaction, encode_entries
from tests.parsers.damage import with_batch_crcs, with_snapshot_crc
from tests.parsers.fuzz import Tally, fuzz, one_input
from tests.parsers.objects import OBJECTS
from tests.parsers.registry import BATCHES, ELSEWHERE, EMPTY, PARSERS, ROOT, Parser, found_parsers
from tests.rules import rule

INPUTS = 600  # of each parser; ./dev fuzz-parsers runs a million
# Parsers whose file is an argument by name, or which take text or messages: found_parsers cannot see the bytes.
BY_FILE = (
    "quorumlog/security/acl/content.py check_filter",
    "quorumlog/security/sasl/jaas.py read_jaas",
    "quorumlog/security/sasl/scram_format.py read_scram_argument",
    "quorumlog/security/sasl/session.py SaslSession.judge",
    "quorumlog/security/sasl/token.py read_token",
    "quorumlog/security/tls/mapping.py parse_rules",
    "storage/quorumlog_storage/directory/directory.py LockedDirectory.open",
    "quorum/quorumlog_quorum/offline/lost_majority.py read_intent",
)


def test_every_parser_is_registered() -> None:
    covered = [name for parser in PARSERS.values() for name in parser.covers]
    found = list(found_parsers())
    missing = [name for name in found if name not in PARSERS and name not in ELSEWHERE and name not in covered]
    assert missing == [], "add them to tests/parsers/registry.py"
    gone = [name for name in [*PARSERS, *ELSEWHERE, *covered] if name not in found and name not in BY_FILE]
    assert gone == []


@rule("storage 10.15", "log 3.19")
@pytest.mark.parametrize("name", sorted(PARSERS))
def test_any_bytes_give_a_value_or_a_named_error(name: str) -> None:
    tally = Tally()
    fuzz(name, range(INPUTS), tally)
    assert tally.values > 10 and tally.measured >= INPUTS // 64
    assert tally.errors > 10 or not PARSERS[name].errors


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_every_seed_is_read(name: str) -> None:
    """A seed that is refused would exercise only the refusal."""
    parser = PARSERS[name]
    read = 0
    for seed in parser.seeds:
        try:
            parser.call(seed)
            read += 1
        except parser.errors:
            pass
    assert read >= len(parser.seeds) / 2


def test_mended_checksums_are_right() -> None:
    damaged = bytearray(BATCHES[0])
    damaged[BATCH_OVERHEAD] ^= 1
    assert with_batch_crcs(bytes(damaged)) != bytes(damaged)
    assert with_batch_crcs(BATCHES[0] + BATCHES[1]) == BATCHES[0] + BATCHES[1]
    seed = PARSERS["storage/quorumlog_storage/producers/producer_snapshot.py decode_snapshot"].seeds[0]
    assert with_snapshot_crc(seed) == seed


def _lines(form: str) -> bytes:
    return render_checkpoint(form.format(number) for number in range(8_000))


def _batch_of(records: int, codec: Codec = Codec.NONE) -> bytes:
    return encode_batch([Record(n, 0, None, None, ()) for n in range(records)], codec=codec)


# As many entries as a parser can be given in some 50 to 100 KB.
DENSE: list[tuple[str, bytes]] = [
    ("storage/quorumlog_storage/rules/epochs.py LeaderEpochCache.parse", _lines("{0} {0}")),
    ("storage/quorumlog_storage/files/text_checkpoint.py parse_checkpoint", _lines("{0} {0}")),
    ("storage/quorumlog_storage/directory/offset_files.py parse_offsets", _lines("t {0} 9")),
    ("storage/quorumlog_storage/directory/mark.py parse_mark", _lines("t {0} 9")),
    ("storage/quorumlog_storage/files/properties.py parse_properties", b"".join(b"%x\n" % number for number in
    range(9_000))), (
        "storage/quorumlog_storage/segment/time_index.py TimeEntries.decode",
        b"".join(Struct(">qi").pack(n, n) for n in range(8_000)),
    ),
    (
        "quorum/quorumlog_quorum/metadata/frame.py decode_record",
        encode_record(
            PartitionRecord(topic_id=bytes([5]) * 16, partition=0, replicas=tuple(range(300, 20_000)), isr=(1,)),
            LATEST_LEVEL,
        ),
    ),
    (
        "storage/quorumlog_storage/segment/transaction_index.py decode_entries",
        encode_entries([AbortedTransaction(n, 2 * n, 2 * n + 1, 2 * n) for n in range(2_000)]),
    ),
    ("storage/quorumlog_storage/audit/entries.py read_entries", bytes(80_000)),
    *(
        (name, encode_snapshot({n: ProducerEntry(1, (Remembered(4, 9, 2, n),), n) for n in range(2_000)}))
        for name in (
            "storage/quorumlog_storage/producers/producer_snapshot.py decode_snapshot",
            "storage/quorumlog_storage/audit/entries.py read_snapshot",
        )
    ),
    *(
        (name, EMPTY * 1_000)
        for name in (
            "storage/quorumlog_storage/segment/batch.py received_batches", "quorumlog/records/format/batch.py headers",
            "quorum/quorumlog_quorum/disk/metadata_log.py checked_spans",
            "quorumlog/records/validation/produced.py validate_produced",
            "storage/quorumlog_storage/audit/batches.py read_batches", "quorumlog/records/format/batch.py verify_crc",
        )
    ),
    *(
        (name, _batch_of(8_000))
        for name in (
            "quorumlog/records/rowwise/plain.py decode_batch", "quorumlog/records/rowwise/plain.py decode_fields",
            "quorumlog/records/rowwise/plain.py iter_batch",
            "quorumlog/records/validation/record_check.py check_records",
            "quorumlog/records/validation/record_check.py look_at_once",
            "storage/quorumlog_storage/cleaning/record_table.py RecordTable.read",
            "storage/quorumlog_storage/audit/batches.py read_batch_at",
        )
    ),
    ("quorum/quorumlog_quorum/raft/quorum_state.py decode_quorum_state", b"[" + b"[]," * 680 + b"[]]"),
    ("quorum/quorumlog_quorum/offline/lost_majority.py read_intent", b"[" + b"[]," * 680 + b"[]]"),
    ("storage/quorumlog_storage/directory/directory.py LockedDirectory.open", b"[" + b"{}," * 680 + b"{}]"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data"), DENSE, ids=[name for name, _ in DENSE])
def test_an_input_full_of_entries_stays_within_its_bound(name: str, data: bytes) -> None:
    tally = Tally()
    one_input(name, data, tally, measured=True)
    assert tally.measured == 1


def test_what_bounds_an_input_of_many_objects_exists() -> None:
    for name, objects in OBJECTS.items():
        assert name in PARSERS, name
        file, constant = objects.limit.split(" ")
        assert re.search(rf"\b{constant}\b.*=", (ROOT / file).read_text()), objects.limit


def test_a_count_alone_allocates_nothing() -> None:
    """A batch of one record that states two billion, with a checksum that is right."""
    batch = bytearray(_batch_of(1, Codec.GZIP))
    batch[57:61] = (2**31 - 1).to_bytes(4)
    batch[23:27] = (2**31 - 2).to_bytes(4)
    data = with_batch_crcs(bytes(batch))
    for name in (
        "storage/quorumlog_storage/cleaning/record_table.py RecordTable.read",
        "quorumlog/records/rowwise/plain.py decode_batch",
    ):
        tally = Tally()
        one_input(name, data, tally, measured=True)
        assert tally.errors == 1, name


MISTAKES = [
    ("another exception", lambda data: data[0], IndexError),
    ("memory", lambda data: bytes(100 * len(data) + 200_000), AssertionError),
]


@pytest.mark.parametrize(("call", "error"), [one[1:] for one in MISTAKES], ids=[one[0] for one in MISTAKES])
def test_the_fuzz_finds_a_mistake(monkeypatch: pytest.MonkeyPatch, call: object, error: type[Exception]) -> None:
    monkeypatch.setitem(PARSERS, "x", Parser(call=call, seeds=(b"abc",), errors=()))  # type: ignore[arg-type]
    with pytest.raises(error) as caught:
        fuzz("x", range(2_000), Tally())
    assert "repeat it" in caught.value.__notes__[-1]


@pytest.mark.parametrize("number", [b"1.5", b'"3"', b"1e999", b"-2", b"true"])
def test_the_note_of_a_recovery_holds_whole_numbers(number: bytes) -> None:
    """A number that cannot be an offset is no number of a note, whatever Python would make of it."""
    parser = PARSERS["quorum/quorumlog_quorum/offline/lost_majority.py read_intent"]
    refused = False
    try:
        parser.call(parser.seeds[0].replace(b'"endOffset":10', b'"endOffset":' + number))
    except RecoveryRefused:
        refused = True
    except Exception:
        refused = False
    assert refused
