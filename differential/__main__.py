"""The same random requests to Apache Kafka and to us: which answers differ without a reason?

    ./dev differential [--seed N] [--count N | --minutes N] [--api NAME] [--keep N,N-N] [--shrink] [--wanted]

Needs Java 17 or newer and mvn. Sequences begin with --seed and go on until --count calls were made or --minutes are
over. A finding is printed with both answers and the command that replays it; --shrink looks for a shorter one. Exit
code 0: every difference is explained by `differential/wanted.py`; 1: not; 2: it could not run, and says why.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.peers.kafka_tools import VERSION, Unavailable, get_kafka
from differential.builders import BUILDERS
from differential.conversation import Ended
from differential.run import Finding, Play, Tally
from differential.shrink import shrunk
from differential.sides import Sides, started
from differential.wanted import WANTED

CALLS = 1_000
COULD_NOT = 2
TOLD_OF_A_KIND = 1
TOLD_FIELDS = 8
VALUE_CHARACTERS = 2_000
WHOLE_RUN = 4  # sequences of each kind; before that a row of the table may have had no chance


class SideEnded(Exception):
    """One of the two nodes takes no connections any more."""


def main(argv: list[str]) -> int:
    options = _parse(argv)
    if options.wanted:
        for row in WANTED:
            print(f"{row.name} ({row.api.replace('|', ', ') or 'every API'}): {row.reason}")
        return 0
    try:
        kafka = get_kafka()
    except Unavailable as reason:
        print(f"skipped: Apache Kafka cannot run here: {reason}")
        return COULD_NOT
    folder = Path(tempfile.mkdtemp(prefix="quorumlog-differential-"))
    tally, findings = Tally(), []
    with started(kafka, folder) as sides:
        print(f"Apache Kafka {VERSION} and we announce {len(sides.versions)} APIs in common", flush=True)
        try:
            findings = run(sides, options, tally)
        except SideEnded:
            print(f"the logs of both are in {folder}")
            return 1
        if options.shrink and findings:
            _shrink(sides, findings[0], options.api)
    tell(tally, findings)
    if findings:
        print(f"the logs of both are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def run(sides: Sides, options: argparse.Namespace, tally: Tally) -> list[Finding]:
    """Sequences from the seed on; prints the first finding of each kind. Raises SideEnded, which was printed."""
    findings: list[Finding] = []
    kinds: Counter[object] = Counter()
    until_s = time.monotonic() + 60 * options.minutes if options.minutes else None
    count = options.count or (None if until_s else CALLS)
    seed = options.seed
    while True:
        play, ended = Play(sides, seed, tally, options.api), ""
        try:
            play.run(options.keep)
        except Ended as error:
            ended = f"seed {seed}: at or before step {play.at} a side has ended: {error}"
        for finding in play.findings:
            findings.append(finding)
            kinds[finding.kind] += 1
            if kinds[finding.kind] <= TOLD_OF_A_KIND:
                print("\n".join(lines_of(finding, options.api)), flush=True)
        if ended:
            print(f"{ended}\n  replay: {replay(seed, range(play.at + 1), options.api)}", flush=True)
            raise SideEnded
        seed += 1
        is_late = until_s is not None and time.monotonic() >= until_s
        if options.keep or is_late or (count is not None and tally.count >= count):
            return findings


def lines_of(finding: Finding, api: str | None) -> list[str]:
    step = finding.step
    odd = f", odd: {step.odd}" if step.odd else ""
    lines = [f"seed {finding.seed}, step {finding.number}: {step.api} version {step.version}{odd}"]
    for one in finding.found[:TOLD_FIELDS]:
        lines.append(f"  {one.path or 'answer'}: theirs {one.theirs!r}, ours {one.ours!r}"[:VALUE_CHARACTERS])
    if len(finding.found) > TOLD_FIELDS:
        lines.append(f"  and {len(finding.found) - TOLD_FIELDS} more fields")
    lines.append(f"  asked: {step.values}"[:VALUE_CHARACTERS])
    lines.append(f"  replay: {replay(finding.seed, range(finding.number + 1), api)}")
    return lines


def replay(seed: int, numbers: Sequence[int], api: str | None) -> str:
    own = f" --api {api}" if api else ""
    return f"./dev differential --seed {seed}{own} --keep {_ranges(numbers)}"


def tell(tally: Tally, findings: Sequence[Finding]) -> None:
    """The closing lines."""
    kinds = Counter(finding.kind for finding in findings)
    print(
        f"{tally.count:,} calls in {tally.sequences} sequences, {len(tally.calls)} versions of APIs, "
        f"{tally.again} asked again, {tally.apart} times apart"
    )
    print("explained: " + (", ".join(f"{name} {count}" for name, count in tally.explained.most_common()) or "nothing"))
    if tally.sequences >= 4 * WHOLE_RUN:
        idle = [row.name for row in WANTED if not tally.explained[row.name]]
        print(f"rows of the table that explained nothing: {', '.join(idle) or 'none'}")
    for (api, what), count in kinds.most_common():
        print(f"  {count} x {api}: {'; '.join(what)}"[:400])
    print(f"{len(findings)} answers differ without a reason, of {len(kinds)} kinds")


def _shrink(sides: Sides, finding: Finding, api: str | None) -> None:
    def fails(numbers: Sequence[int]) -> bool:
        found = Play(sides, finding.seed, Tally(), api).run(numbers)
        return any(one.kind == finding.kind for one in found)

    print(f"  replay: {replay(finding.seed, shrunk(range(finding.number + 1), fails), api)}")


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev differential", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first sequence (default 0)")
    parser.add_argument("--count", type=int, metavar="N", help=f"calls (default {CALLS:,}); the last sequence ends")
    parser.add_argument("--minutes", type=float, metavar="N", help="begin no sequence later than this")
    parser.add_argument("--api", choices=sorted(BUILDERS), metavar="NAME", help="of this API above all, by kio's name")
    parser.add_argument("--keep", type=_numbers, metavar="N,N-N", help="only these steps of the seed's sequence")
    parser.add_argument("--shrink", action="store_true", help="look for a shorter sequence for the first finding")
    parser.add_argument("--wanted", action="store_true", help="print the table of wanted differences; runs nothing")
    return parser.parse_args(argv)


def _numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise argparse.ArgumentTypeError(f"{part!r} is neither a number nor a range such as 3-7")
        found += range(int(first), int(last or first) + 1)
    return found


def _ranges(numbers: Sequence[int]) -> str:
    """The inverse of `_numbers`."""
    parts: list[str] = []
    first = before = numbers[0]
    for number in (*numbers[1:], None):
        if number == before + 1:
            before = number
            continue
        parts.append(str(first) if first == before else f"{first}-{before}")
        if number is not None:
            first = before = number
    return ",".join(parts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
