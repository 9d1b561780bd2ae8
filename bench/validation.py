"""What it costs a leader to look at the records inside produced batches, beside checksum and header alone.

Per MB of keys and values, one core, the default batch of the bench's loads. "Alike" records have one size, as load
tests and fixed-size rows send them; "mixed" ones differ by half their size, as most applications do; "headers": mixed,
with one header each, as tracing adds it. There is no compiled form: a node imports no numba.

    python -m bench.validation [--rounds N] [--batch-bytes N]
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.measuring.report import Report, Row, print_heading
from quorumlog.records import Codec, Record, encode_batch, headers, validate_produced
from quorumlog.records.validation.record_check import check_records

BATCH_BYTES = 256 * 1024
RECORD_BYTES = (1024, 100)
SHAPES = ("alike", "mixed", "headers")
CODECS = (Codec.NONE, Codec.LZ4, Codec.ZSTD, Codec.SNAPPY, Codec.GZIP)
START_MS = 1_700_000_000_000
SEED = 4711
MIN_MEASURED_S = 0.02  # one round of one case lasts at least so long


@dataclass(frozen=True, slots=True)
class Case:
    codec: Codec
    record_bytes: int
    shape: str
    batch: bytes
    value_bytes: int  # keys and values, before compression

    @property
    def name(self) -> str:
        return f"look at {self.record_bytes:,} B {self.shape}, {self.codec.name.lower()}"


def cases(batch_bytes: int = BATCH_BYTES) -> list[Case]:
    return [
        _case(codec, record_bytes, shape, batch_bytes)
        for record_bytes in RECORD_BYTES
        for shape in SHAPES
        for codec in CODECS
    ]


def _case(codec: Codec, record_bytes: int, shape: str, batch_bytes: int) -> Case:
    rng = random.Random(SEED)
    written: list[Record] = []
    time_ms = START_MS
    for offset in range(max(1, batch_bytes // record_bytes)):
        time_ms += rng.randrange(3)
        size = record_bytes if shape == "alike" else rng.randrange(record_bytes // 2, record_bytes * 3 // 2)
        text = b'{"flight":%d,"carrier":"UA","delay":%d}' % (rng.randrange(10_000), rng.randrange(600))
        value = (text * (size // len(text) + 1))[: size - 10]
        header = (("trace", b"0123456789abcdef"),) if shape == "headers" else ()
        written.append(Record(offset, time_ms, b"%010d" % offset, value, header))
    value_bytes = sum(len(record.key or b"") + len(record.value or b"") for record in written)
    return Case(codec, record_bytes, shape, encode_batch(written, codec=codec), value_bytes)


def measure(rounds: int, batch_bytes: int = BATCH_BYTES) -> list[Row]:
    """Rows in ms of processor time per MB: the header's check alone, then what the look inside adds."""
    measured = cases(batch_bytes)
    plain = [case for case in measured if case.codec == Codec.NONE and case.shape == "mixed"]
    return [
        *(_row(f"header and checksum, {case.record_bytes:,} B", _header_ms, case, rounds) for case in plain),
        *(_row(case.name, _look_ms, case, rounds) for case in measured),
    ]


def _row(name: str, measured_ms: Callable[[Case], float], case: Case, rounds: int) -> Row:
    return Row(name=name, unit="ms/MB", rounds=[measured_ms(case) for _ in range(rounds)])


def _look_ms(case: Case) -> float:
    header = headers(case.batch)[0]

    def look() -> None:
        for _ in check_records(case.batch, header):
            pass

    return _ms_per_mb(look, case.value_bytes)


def _header_ms(case: Case) -> float:
    return _ms_per_mb(lambda: validate_produced(case.batch, len(case.batch)), case.value_bytes)


def _ms_per_mb(call: Callable[[], object], value_bytes: int) -> float:
    call()
    begin, times = time.process_time(), 0
    while time.process_time() - begin < MIN_MEASURED_S:
        call()
        times += 1
    return (time.process_time() - begin) * 1e3 / times / (value_bytes / 1e6)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench.validation", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-bytes", type=int, default=BATCH_BYTES)
    options = parser.parse_args(argv)
    print_heading("what it costs to look at records")
    Report().add(*measure(options.rounds, options.batch_bytes))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
