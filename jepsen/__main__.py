"""`python -m jepsen sim --seed N`: one simulation and its verdict. `swarm`: many. `mutants`: what they would catch.

`crash-sweep`: the storage engine, stopped at every call of a disk. `live`: real processes, real clients, real faults.
`soak`: log directories for a virtual year, and what must stay bounded.
`controller-loop`: real processes whose active controller is killed and stopped, under a load of metadata changes.
`transactions`: real processes that are killed under a transactional list-append workload.
`pipeline`: a real Spark that streams exactly once, while its processes and ours are killed.
`drill`: faults at a running cluster, each of which check, explain, an alert and the console must name.
`nightly`: all of these and the fuzzers, in slices by turns, for hours.

Exit code 0: everything is VALID (for `mutants`: every mutant is killed; for `crash-sweep`: every promise holds and
enough was reached); 1: not; 2: invalid arguments (for `live`: also a run that could not be, or exercised too little).
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from jepsen.crash.faults import Fault, Variant
from jepsen.crash.runs import BY_NAME
from jepsen.crash.sweep import Chosen, sweep
from jepsen.drill import command as drill_command
from jepsen.functions.reached import tell_unreached
from jepsen.live import command as live_command
from jepsen.live.controllers import command as controllers_command
from jepsen.live.transactions import command as transactions_command
from jepsen.mutation.mutant import changed_since
from jepsen.mutation.trial import run_mutants
from jepsen.nightly import command as nightly_command
from jepsen.pipeline import command as pipeline_command
from jepsen.pool.shrunk import shrink_in_children
from jepsen.sim.job import Job
from jepsen.sim.result import Result, Verdict, rate_of
from jepsen.sim.shrink.options import add_cuts, cuts_of, replay, unfit
from jepsen.sim.simulate import simulate
from jepsen.soak import command as soak_command
from jepsen.swarm import TURNS, swarm

_BALLAST_BYTES = 64
WHOLE_SEEDS = 1  # of the crash sweep: one reaches more than 50,000 distinct crash images


def main(argv: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(argv)
    if options.verb == "sim" and (why := unfit(cuts_of(options), options.profile)):
        parser.error(why)
    logging.getLogger("quorumlog").setLevel(logging.CRITICAL)  # killed nodes log many errors
    if options.verb == "sim":
        return _sim(options)
    if options.verb == "swarm":
        if options.functions:
            return tell_unreached(options.first, options.seeds or len(TURNS), options.profile, options.seconds)
        limit_s = options.minutes * 60 if options.minutes else None
        seeds = options.seeds or (10**9 if limit_s else 50)
        return swarm(options.first, seeds, options.profile, options.seconds, options.processes, limit_s)
    if options.verb == "crash-sweep":
        return sweep(_chosen(options))
    if options.verb == "live":
        return live_command.live(options)
    if options.verb == "soak":
        return soak_command.soak(options)
    if options.verb == "controller-loop":
        return controllers_command.controller_loop(options)
    if options.verb == "transactions":
        return transactions_command.transactions(options)
    if options.verb == "pipeline":
        return pipeline_command.pipeline(options)
    if options.verb == "drill":
        return drill_command.drill(options)
    if options.verb == "nightly":
        return nightly_command.nightly(options)
    changed = changed_since(options.changed) if options.changed else None
    return run_mutants(options.names, options.seeds, options.processes, options.report, changed=changed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jepsen", description="Fault injection for quorumlog.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    profiles = TURNS
    sim = verbs.add_parser("sim", help="one simulated cluster from a seed, with its verdict")
    sim.add_argument("--seed", type=int, required=True)
    sim.add_argument("--trace", type=Path, help="write every line that goes into the trace hash")
    sim.add_argument("--json", action="store_true", help="one line of JSON for programs")
    sim.add_argument("--ballast", type=int, default=0, help="objects to allocate first, which moves the heap")
    add_cuts(sim)
    sim.add_argument(
        "--shrink", action="store_true", help="if the seed fails: search for a smaller run that fails alike"
    )
    many = verbs.add_parser("swarm", help="simulated clusters of successive seeds; failing ones are shrunk")
    many.add_argument("--first", type=int, default=1, help="the first seed")
    many.add_argument("--seeds", type=int, help="number of seeds (default 50)")
    many.add_argument("--minutes", type=float, help="stop after this many minutes")
    many.add_argument(
        "--functions", action="store_true", help="report which functions never ran (default: a seed of each profile)"
    )
    sim.add_argument("--profile", choices=profiles, default="swarm", help="kinds of faults (default swarm)")
    many.add_argument("--profile", choices=profiles, help="kinds of faults (default: all profiles by turns)")
    for verb in (sim, many):
        verb.add_argument("--seconds", type=int, default=60, help="virtual seconds with faults (default 60)")
    mutants = verbs.add_parser("mutants", help="prove that known mistakes are caught")
    mutants.add_argument("names", nargs="*", help="default: all of jepsen/mutants")
    mutants.add_argument("--seeds", type=int, default=200, help="most seeds per mutant (default 200)")
    mutants.add_argument("--changed", metavar="COMMIT", help="only those whose file, diff or test has changed since")
    mutants.add_argument("--report", type=Path, help="write what killed each, e.g. to docs/mutants.md (or FILE.json)")
    crash = verbs.add_parser("crash-sweep", help="the storage engine, stopped at every call of a disk")
    crash.add_argument("--first", type=int, default=1, help="the first seed")
    crash.add_argument("--seeds", type=int, help=f"number of seeds (default {WHOLE_SEEDS})")
    crash.add_argument("--minutes", type=float, help="stop after this many minutes")
    crash.add_argument("--sample", action="store_true", help="a few runs of each site and fault (what CI runs)")
    crash.add_argument("--seed", type=int, help="replay: this seed alone")
    crash.add_argument("--site", help="replay: FILE:LINE:METHOD")
    crash.add_argument("--fault", choices=[fault.value for fault in Fault], help="replay: this fault alone")
    crash.add_argument("--variant", choices=[one.value for one in Variant], help="replay: this variant alone")
    crash.add_argument(
        "--workload", action="append", default=[], choices=sorted(BY_NAME), metavar="NAME",
        help="replay: this workload alone; may be repeated",
    )  # fmt: skip
    crash.add_argument("--call", type=int, help="replay: this call of the workload alone")
    live = verbs.add_parser("live", help="real processes and librdkafka's clients, under real faults")
    live_command.add_arguments(live)
    soak = verbs.add_parser("soak", help="log directories for a virtual year, and what must stay bounded")
    soak_command.add_arguments(soak)
    loop = verbs.add_parser("controller-loop", help="kill and stop the active controller again and again")
    controllers_command.add_arguments(loop)
    appends = verbs.add_parser("transactions", help="transactional list-append over real processes that are killed")
    transactions_command.add_arguments(appends)
    streams = verbs.add_parser("pipeline", help="a real Spark that streams exactly once, while everything is killed")
    pipeline_command.add_arguments(streams)
    drills = verbs.add_parser("drill", help="faults at a running cluster, each named by an operator's tools in 30 s")
    drill_command.add_arguments(drills)
    nights = verbs.add_parser("nightly", help="everything that takes hours, in slices by turns, with one report")
    nightly_command.add_arguments(nights)
    for verb in (many, mutants, crash):
        verb.add_argument("--processes", type=int, default=2)
    return parser


def _chosen(options: argparse.Namespace) -> Chosen:
    seeds = options.seeds or (10**9 if options.minutes else WHOLE_SEEDS)
    return Chosen(
        first=options.first if options.seed is None else options.seed,
        seeds=seeds if options.seed is None else 1,
        minutes=options.minutes,
        sample=options.sample,
        processes=options.processes,
        site=options.site,
        fault=Fault(options.fault) if options.fault else None,
        variant=Variant(options.variant) if options.variant else None,
        workloads=tuple(options.workload),
        call=options.call,
    )


def _sim(options: argparse.Namespace) -> int:
    if options.shrink:
        job = Job(seed=options.seed, profile=options.profile, seconds=options.seconds, cuts=cuts_of(options))
        command = shrink_in_children(job)
        print(f"replay: {command}" if command else f"seed {options.seed} does not fail")
        return 1 if command else 0
    ballast = [bytearray(_BALLAST_BYTES + number % 977) for number in range(options.ballast)]
    started, before_s = time.monotonic(), time.process_time()
    if options.trace is None:
        result = _simulate(options, None)
    else:
        with options.trace.open("w") as file:
            result = _simulate(options, file)
    assert len(ballast) == options.ballast
    processor_s = time.process_time() - before_s
    took_s = time.monotonic() - started
    print(as_json(result, processor_s) if options.json else report(result, options.seconds, took_s, processor_s))
    return 0 if result.verdict is Verdict.VALID else 1


def _simulate(options: argparse.Namespace, trace: TextIO | None) -> Result:
    return simulate(options.seed, options.profile, options.seconds, cuts_of(options), trace)


def report(result: Result, seconds: int, took_s: float, processor_s: float) -> str:
    lines = [f"seed {result.seed}: {result.verdict.value}   wire {result.wire}   trace {result.trace_hash}"]
    lines.append(f"  {result.virtual_s:.1f} virtual s, {result.steps} steps, {took_s:.1f} s")
    lines.append(f"  {rate_of(result.lines, processor_s)}")
    lines.append("  exercised: " + ", ".join(f"{name} {count}" for name, count in result.exercised.items()))
    lines.extend(f"  {finding}" for finding in result.findings[:20])
    if result.verdict is not Verdict.VALID:
        lines.append(f"  replay: {replay(result.seed, result.plan.name, seconds, result.options)}")
    return "\n".join(lines)


def as_json(result: Result, processor_s: float) -> str:
    fields = {
        "seed": result.seed,
        "profile": result.plan.name,
        "wire": result.wire,
        "verdict": result.verdict.value,
        "trace": result.trace_hash,
        "lines": result.lines,
        "processor_s": processor_s,
        "findings": [asdict(finding) for finding in result.findings[:20]],
        "exercised": result.exercised,
        "blows": [asdict(blow) for blow in result.blows],
        "began_ns": result.began_ns,
        "seconds": result.seconds,
    }
    return json.dumps(fields)


if __name__ == "__main__":
    sys.exit(main())
