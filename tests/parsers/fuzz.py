"""Any bytes for every parser: `./dev fuzz-parsers --inputs 1000000`; a sample in the test suite.

Of each input: the parser returns a value, or raises one of its named errors; a value that can be written again reads
as an equal one; it takes less than MAX_INPUT_S of processor time; and it allocates at most 4 times the input plus
64 KiB (`tests/parsers/objects.py` says where an object for each entry comes to that). Memory is looked at in every
large input and in every MEASURED_EVERYth other one, since measuring is slow. Each input is determined by the parser's
name and its number.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import tracemalloc
from dataclasses import dataclass

from tests.parsers.damage import damaged
from tests.parsers.objects import most_bytes
from tests.parsers.registry import PARSERS, Parser

MEASURED_EVERY = 64
LARGE_BYTES = 4_096
MAX_INPUT_S = 1.0  # of this thread's processor time
MENDED_PART = 0.5
PROGRESS_S = 10.0
INPUTS = 1_000_000


@dataclass(slots=True)
class Tally:
    """values: inputs that gave one. errors: those that were refused. measured: those whose memory was looked at."""

    values: int = 0
    errors: int = 0
    measured: int = 0


def fuzz(name: str, numbers: range, tally: Tally) -> None:
    """Raises AssertionError, or what the parser should not have raised, with a note how to repeat it."""
    parser = PARSERS[name]
    for number in numbers:
        rng = random.Random(f"{name} {number}")
        data = damaged(rng, parser.seeds)
        if rng.random() < MENDED_PART:
            data = parser.mend(data)
        try:
            one_input(name, data, tally, measured=number % MEASURED_EVERY == 0)
        except BaseException as error:
            error.add_note(f"{len(data)} bytes, from {data[:200].hex()}")
            error.add_note(f"repeat it: ./dev fuzz-parsers --parser '{name}' --first {number} --inputs 1")
            raise


def one_input(name: str, data: bytes, tally: Tally, *, measured: bool) -> None:
    """Raises AssertionError, or what the parser should not have raised."""
    parser = PARSERS[name]
    measured = measured or len(data) >= LARGE_BYTES
    if measured:
        parser_warm(parser)
        tracemalloc.start()
    started = time.thread_time()
    try:
        try:
            value = parser.call(data)
        except parser.errors:
            tally.errors += 1
            value = None
        else:
            tally.values += 1
        took_s = time.thread_time() - started
        peak = tracemalloc.get_traced_memory()[1] if measured else 0
    finally:
        if measured:
            tracemalloc.stop()
            tally.measured += 1
    assert took_s <= MAX_INPUT_S, f"{took_s:.2f} s"
    limit = most_bytes(name, data)
    assert peak <= limit, f"{peak} bytes of memory, at most {limit} for {len(data)} bytes"
    if parser.again is not None and value is not None:
        repeated = parser.call(parser.again(value))
        assert repeated == value, f"{value!r} was read again as {repeated!r}"


_warm: list[Parser] = []


def parser_warm(parser: Parser) -> None:
    """What is imported or compiled once is no input's memory."""
    if not any(parser is one for one in _warm):
        for seed in parser.seeds:
            try:
                parser.call(seed)
            except parser.errors:
                pass
        _warm.append(parser)


def main() -> int:
    arguments = argparse.ArgumentParser(prog="./dev fuzz-parsers", description="Any bytes for every parser.")
    arguments.add_argument("--inputs", type=int, default=INPUTS, help=f"in all (default {INPUTS:,})")
    arguments.add_argument("--each", type=int, metavar="INPUTS", help="of each parser, instead of in all")
    arguments.add_argument("--of", default="", metavar="FOLDER", help="parsers of this folder, as quorumlog/security")
    arguments.add_argument("--first", type=int, default=0, help="number of the first input of each parser")
    arguments.add_argument("--parser", choices=sorted(PARSERS), metavar="NAME", help="this one alone")
    options = arguments.parse_args()
    names = [options.parser] if options.parser else [name for name in sorted(PARSERS) if name.startswith(options.of)]
    if not names:
        arguments.error(f"--of {options.of}: no parser is there")
    each = options.each or -(-options.inputs // len(names))
    told = started = time.monotonic()
    total = Tally()
    for done, name in enumerate(names):
        fuzz(name, range(options.first, options.first + each), total)
        if time.monotonic() - told >= PROGRESS_S:
            told = time.monotonic()
            print(f"{(done + 1) * each:,} inputs, {told - started:.0f} s", flush=True)
    took_s = time.monotonic() - started
    print(
        f"{len(names)} parsers, {len(names) * each:,} inputs: {total.values:,} values, {total.errors:,} named errors, "
        f"memory of {total.measured:,} measured; nothing else, in {took_s:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
