"""The compiled work with keys against the plain one: the same files, the same answers, the same bytes refused."""

from __future__ import annotations

from struct import pack
from typing import Any

import numpy as np
import pytest
from cleaning_samples import CONFIG, FIRST_MS, add, add_marker, run_round
from hypothesis import given, settings
from hypothesis import strategies as st
from storage_samples import PATH, disk_with_data

from jepsen.sim.machine.disk import SimDisk
from quorumlog.records import Codec, CorruptRecords, Record, encode_batch
from quorumlog.records.format.batch import BatchHeader
from quorumlog_storage.cleaning.compiled_keys import CompiledKeys
from quorumlog_storage.cleaning.key_kernels import hashed
from quorumlog_storage.cleaning.keys import KeysSpec, PlainKeys
from quorumlog_storage.cleaning.marks import Marks
from quorumlog_storage.log.log import Log
from tests.parts import few
from tests.rules import rule

pytestmark = pytest.mark.filterwarnings("error")

# by bytes of input: the first vectors of SipHash's reference, 128 bits
SIPHASH = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
}


@rule("storage 9.20")
@pytest.mark.parametrize("size", SIPHASH)
def test_the_hash_is_siphash(size: int) -> None:
    key0, key1 = (np.uint64(int.from_bytes(bytes(range(at, at + 8)), "little")) for at in (0, 8))
    data = np.frombuffer(b"?" + bytes(range(size)) + b"?", np.uint8)
    first, second = hashed(data, 1, 1 + size, key0, key1)
    assert pack("<QQ", int(first), int(second)).hex() == SIPHASH[size]


KEY = st.one_of(st.none(), st.sampled_from([b"", b"a", b"b", b"seven77", b"eight888", b"k" * 200]))
VALUE = st.one_of(st.none(), st.sampled_from([b"", b"v", b"w" * 90]))
BATCH = st.tuples(
    st.lists(st.tuples(KEY, VALUE), min_size=1, max_size=4),
    st.sampled_from([Codec.NONE, Codec.NONE, Codec.ZSTD, Codec.GZIP]),
    st.sampled_from(["", "", "", "idempotent", "transaction", "commit", "abort"]),
)


def filled(disk: SimDisk, steps: list[Any]) -> Log:
    log, sequence, is_open = Log.open(disk, PATH, CONFIG, clean=True), 0, False
    for records, codec, kind in steps:
        if kind in ("commit", "abort"):
            if is_open:
                add_marker(log, 7, committed=kind == "commit")
            is_open = False
        elif kind == "transaction":
            is_open = True
            add(log, records, codec=codec, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        elif kind:
            add(log, records, codec=codec, producer_id=9, producer_epoch=0, base_sequence=sequence)
            sequence += len(records)
        else:
            add(log, records, codec=codec)
    if is_open:
        add_marker(log, 7, committed=False)
    log.roll()
    return log


@rule("storage 9.20")
@settings(max_examples=few(150))
@given(
    steps=st.lists(BATCH, min_size=1, max_size=20),
    slots=st.integers(2, 12),
    buffer=st.sampled_from([80, 300, 5_000]),
    marks=st.sampled_from([1, 4, 1_000]),
    first_dirty=st.integers(0, 6),
)
def test_both_forms_write_the_same_files(
    steps: list[Any], slots: int, buffer: int, marks: int, first_dirty: int
) -> None:
    """Two rounds, the second one after the delete horizons of the first, with maps and marks that may be too small."""
    found = []
    for form in (PlainKeys, CompiledKeys):
        disk = disk_with_data()
        log = filled(disk, steps)
        answers = [
            run_round(
                log, min(dirty, log.segment_bases[-1] - 1), make_keys=form, map_bytes=24 * slots, marks_bytes=marks,
                io_buffer_bytes=buffer, now_ms=FIRST_MS + now_ms,
            )
            for dirty, now_ms in ((first_dirty, 0), (0, 5_000))
        ]  # fmt: skip
        names = sorted(disk.list(PATH))
        found.append((answers, {name: disk.open(f"{PATH}/{name}").pread(0, 1 << 20) for name in names}))
    assert found[0] == found[1]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Records with up to two bytes changed."""
    made = draw(st.lists(st.tuples(KEY, VALUE), min_size=1, max_size=4))
    records = [Record(n, FIRST_MS + n, key, value, ()) for n, (key, value) in enumerate(made)]
    data = bytearray(encode_batch(records)[61:])
    for _ in range(draw(st.integers(0, 2))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]))
    return bytes(data)


@rule("storage 9.20")
@settings(max_examples=few(400))
@given(st.one_of(st.binary(max_size=60), damaged()), st.integers(1, 4), st.integers(0, 10), st.booleans())
def test_both_forms_refuse_the_same_bytes(junk: bytes, count: int, more: int, marked: bool) -> None:
    size = 61 + len(junk)
    header = BatchHeader(0, size - 12, 0, 2, 0, 0, count - 1 + more, FIRST_MS, FIRST_MS, -1, -1, -1, count, 0, size)
    answers = []
    for form in (PlainKeys, CompiledKeys):
        keys = form(KeysSpec(2_400, 0.9, b"k" * 16, FIRST_MS), Marks(0, 20 if marked else 0, 20))
        try:
            answer: object = keys.index(bytes(61) + junk, [header]), len(keys), keys.keyless
        except CorruptRecords as error:
            answer = CorruptRecords if "timestamp" not in error.reason else "a long timestamp"
        answers.append(answer)
    assert answers[0] == answers[1] or answers[1] == "a long timestamp"
