"""Records per second of the columnar codec, beside aiokafka's compiled codec, on the same records and one core.

Each round runs both, one after the other, so that a busy machine slows both. The ratios of the rounds count.
"Encode" is columns (for aiokafka: lists of bytes) to batches with checksums. "Decode" is batches to an Arrow batch (for
aiokafka: to its record objects, with every field read once). Both without headers, and with a header in each record.
Exits with 1 unless aiokafka's compiled module is used, because its pure-Python form would make any codec look good.

    python -m bench.codec [--records N] [--value-bytes N] [--batch-bytes N] [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorumlog.records import NO_PRODUCER, NO_SEQUENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMPILED = "aiokafka.record._crecords"
KEY_BYTES = 10
START_MS = 1_700_000_000_000
WARM_UP_ROUNDS = 2  # not counted: the first codec to run pays for memory that was never touched
ENCODE_GOAL = 5.0  # times aiokafka
DECODE_GOAL = 2.0
HEADERS_GOAL = 2.0  # of both, where each record has a header
HEADER = ("trace", b"0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Work:
    """The records of a run, in both shapes, and the batch size."""

    keys: list[bytes]
    values: list[bytes]
    timestamps: list[int]  # ms
    headers: list[tuple[str, bytes]]  # of each record
    key_column: Any
    value_column: Any
    timestamp_column: Any
    header_column: Any  # None for none
    batch_bytes: int


def make_work(records: int, value_bytes: int, batch_bytes: int, *, with_headers: bool = False) -> Work:
    import numpy as np
    import pyarrow as pa

    keys = [b"%0*d" % (KEY_BYTES, index) for index in range(records)]
    values = [(b"%d," % index * (value_bytes // 2 + 1))[:value_bytes] for index in range(records)]
    timestamps = list(range(START_MS, START_MS + records))
    columns = pa.array(keys, pa.binary()), pa.array(values, pa.binary()), np.array(timestamps)
    headers = [HEADER] if with_headers else []
    header_column = None
    if with_headers:
        kind = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
        header_column = pa.array([[{"name": HEADER[0], "value": HEADER[1]}]] * records, kind)
    return Work(keys, values, timestamps, headers, *columns, header_column, batch_bytes)


def encode_ours(work: Work) -> list[bytes]:
    from quorumlog.records.columnar import lay_out

    columns = (work.key_column, work.value_column, work.timestamp_column, work.header_column)
    found = lay_out(*columns, max_batch_bytes=work.batch_bytes)
    return [bytes(batch.seal(NO_PRODUCER, -1, NO_SEQUENCE, leader_epoch=0)) for batch in found]


def encode_theirs(work: Work) -> list[bytes]:
    from aiokafka.record._crecords import DefaultRecordBatchBuilder

    def builder() -> Any:
        return DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, work.batch_bytes)

    batches = []
    current, offset = builder(), 0
    for key, value, timestamp in zip(work.keys, work.values, work.timestamps, strict=True):
        if current.append(offset, timestamp, key, value, work.headers) is None:  # full
            batches.append(bytes(current.build()))
            current, offset = builder(), 0
            current.append(offset, timestamp, key, value, work.headers)
        offset += 1
    return [*batches, bytes(current.build())]


def decode_ours(batches: Sequence[bytes], buf: bytes) -> int:
    from quorumlog.records.columnar import decode_columns

    del batches
    return int(decode_columns(buf, from_offset=0, to_offset=2**63 - 1).num_rows)


def decode_theirs(batches: Sequence[bytes], buf: bytes) -> int:
    from aiokafka.record._crecords import DefaultRecordBatch

    del buf
    count = 0
    for data in batches:
        batch = DefaultRecordBatch(data)
        assert batch.validate_crc()
        for record in batch:
            _ = (record.key, record.value, record.offset, record.timestamp, record.headers)
            count += 1
    return count


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def use_form(*, compiled: bool) -> None:
    """From now on one form of our codec does all the work: vectors, or compiled kernels."""
    from quorumlog.records.columnar import form

    for one in (form.encoder, form.decoder):
        one.compiled = compiled


def report(name: str, records: int, ours: list[float], theirs: list[float], goal: float | None) -> dict[str, Any]:
    """ours, theirs: seconds of each round. Prints one line and returns the same numbers."""
    ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
    numbers = {
        "operation": name,
        "records_per_second": round(records / statistics.median(ours)),
        "aiokafka_records_per_second": round(records / statistics.median(theirs)),
        "ratio_min": round(min(ratios), 2),
        "ratio_median": round(statistics.median(ratios), 2),
        "ratio_max": round(max(ratios), 2),
        "goal": goal,
    }
    spread = " / ".join(str(numbers[f"ratio_{which}"]) for which in ("min", "median", "max"))
    aim = "" if goal is None else f", goal {goal}"
    ours_rate, their_rate = numbers["records_per_second"], numbers["aiokafka_records_per_second"]
    print(f"{name:<24} {ours_rate:>12,}/s   aiokafka {their_rate:>12,}/s   ratio {spread} (min/median/max{aim})")
    return numbers


def compiled_is_measured() -> bool:
    from aiokafka.record import default_records

    used = (default_records.DefaultRecordBatch, default_records.DefaultRecordBatchBuilder)
    files = [getattr(sys.modules[kind.__module__], "__file__", "") or "" for kind in used]
    return all(kind.__module__.startswith(COMPILED) for kind in used) and all(
        f.endswith((".so", ".pyd")) for f in files
    )


def run_form(work: Work, rounds: int, *, compiled: bool) -> list[dict[str, Any]]:
    """Goals hold for the compiled form; vectors are for the rows before it pays."""
    from quorumlog.records import headers, stamp

    use_form(compiled=compiled)

    records = len(work.keys)
    batches = encode_ours(work)
    parts: list[bytes | memoryview] = []
    offset = 0
    for data in batches:  # as a broker would store them, each at its offset
        (header,) = headers(data)
        parts.extend(stamp(data, header, offset, 0))
        offset += header.count
    buf = b"".join(parts)
    sides = (lambda: encode_ours(work), lambda: encode_theirs(work))
    readers = (lambda: decode_ours(batches, buf), lambda: decode_theirs(batches, buf))
    assert readers[0]() == readers[1]() == records
    times: list[list[float]] = [[], [], [], []]
    for turn in range(WARM_UP_ROUNDS + rounds):
        for column, call in enumerate((*sides, *readers)):
            taken = seconds(call)
            if turn >= WARM_UP_ROUNDS:
                times[column].append(taken)
    name = ("compiled" if compiled else "vectors") + (", headers" if work.headers else "")
    goals = (HEADERS_GOAL, HEADERS_GOAL) if work.headers else (ENCODE_GOAL, DECODE_GOAL)
    return [
        report(f"{what} {name}", records, ours, theirs, goal if compiled else None)
        for what, ours, theirs, goal in zip(("encode", "decode"), times[::2], times[1::2], goals, strict=True)
    ]


def run(work: Work, rounds: int) -> list[dict[str, Any]]:
    """Both forms, each beside aiokafka."""
    return [one for compiled in (False, True) for one in run_form(work, rounds, compiled=compiled)]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench.codec", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--batch-bytes", type=int, default=1024 * 1024)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options = parser.parse_args(argv)
    if not compiled_is_measured():
        print(f"aiokafka does not use {COMPILED} here: install a wheel of aiokafka", file=sys.stderr)
        return 1
    work = make_work(options.records, options.value_bytes, options.batch_bytes)
    settings = {"records": options.records, "value_bytes": options.value_bytes, "batch_bytes": options.batch_bytes}
    print(", ".join(f"{name} {value:,}" for name, value in settings.items()), f"rounds {options.rounds}")
    results = run(work, options.rounds)
    if options.json:
        options.json.write_text(json.dumps({"settings": settings, "results": results}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
