"""`python -m jepsen pipeline`. Exit code 0: VALID; 1: INVALID; 2: not carried out, or exercised too little."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jepsen.pipeline.history import Shape

MINUTES, RATE = 10.0, 100.0
DEFAULT_REPORT = Path("out/pipeline")
COULD_NOT_RUN = 2
EXAMPLES = """examples:
  ./dev pipeline --minutes 10                        as many kills as fit into ten minutes
  ./dev pipeline --kills 300 --minutes 120 --seed 7  300 kills, drawn by seed 7; too little if they take longer
  ./dev pipeline --kills 20 --shape aggregate        the stream counts by key
  ./dev pipeline --kills 20 --kafka localhost:9092   into an Apache Kafka that runs there; its nodes are left alone
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help=f"how long kills come at most (default {MINUTES:g})"
    )
    parser.add_argument("--kills", type=int, default=0, help="how many there are to be (default: as many as fit)")
    parser.add_argument("--seed", type=int, default=1, help="decides what is struck, and when (default 1)")
    parser.add_argument(
        "--shape", choices=[one.value for one in Shape], help="of the stream (default: map if the seed is odd)"
    )
    parser.add_argument("--rate", type=float, default=RATE, help=f"source records a second (default {RATE:g})")
    parser.add_argument("--kafka", default="", metavar="SERVERS", help="an Apache Kafka in place of nodes of ours")
    parser.add_argument("--report", type=Path, default=DEFAULT_REPORT, metavar="DIR", help="folder of the report")


def shape_of(options: argparse.Namespace) -> Shape:
    if options.shape:
        return Shape(options.shape)
    return Shape.MAP if options.seed % 2 else Shape.AGGREGATE


def pipeline(options: argparse.Namespace) -> int:
    """The exit code."""
    from quorumlog.spark.java import NoJava
    from quorumlog.testing.layout import LayoutError
    from quorumlog.testing.nodes import NodeEnded
    from quorumlog.testing.ports import NoFreePorts
    from quorumlog.testing.waiting import TimedOut

    try:
        import pyspark  # noqa: F401  # the test extra brings it
    except ImportError:
        print("jepsen pipeline needs Spark: pip install 'quorumlog[test]'", file=sys.stderr)
        return COULD_NOT_RUN
    try:
        return _carry_out(options)
    except (LayoutError, NodeEnded, NoFreePorts, NoJava, TimedOut) as error:
        print(f"the run could not be carried out: {error}", file=sys.stderr)
        return COULD_NOT_RUN


def _carry_out(options: argparse.Namespace) -> int:
    from jepsen.pipeline.run import REPORT, Options, carry_out

    chosen = Options(
        minutes=options.minutes,
        kills=options.kills,
        seed=options.seed,
        shape=shape_of(options),
        per_second=options.rate,
        kafka=options.kafka,
    )
    outcome = carry_out(chosen, options.report, lambda text: print(text, flush=True))
    for finding in outcome.findings[:20]:
        print(f"  {finding}")
    for name, count in outcome.counts.items():
        print(f"  {count:>10,} {name}")
    for line in (*outcome.by_target, *(f"{one}{'' if one.is_met else ': TOO LITTLE'}" for one in outcome.minimums)):
        print(f"  {line}")
    lost, twice, torn = (outcome.number.get(f"pipeline-{name}", 0) for name in ("lost", "twice", "torn"))
    print(
        f"seed {chosen.seed}, {chosen.shape.value}: {outcome.verdict}   {len(outcome.strikes)} kills, lost {lost}, "
        f"twice {twice}, torn {torn}, {outcome.took_s:.0f} s"
    )
    print(f"report: {options.report / REPORT}")
    return {"VALID": 0, "INVALID": 1}.get(outcome.verdict, COULD_NOT_RUN)
