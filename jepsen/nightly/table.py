"""What a night does: one row for each kind of work. A new verb that takes hours gets a row here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jepsen.crash.runs import BY_NAME
from jepsen.live.scenarios.catalogue import SCENARIOS
from jepsen.nightly.work import Command, Work, turn_and_row
from jepsen.pipeline.cells import chosen
from jepsen.swarm import TURNS

LONG_FROM = 1_000_001  # first seed of the long swarm: the beginning of a shorter run of that seed would be the same
MUTANT_SEEDS = 200
TRANSACTIONS = 20_000  # of a slice
KILLS = 100  # of a slice, and three slices are a night's
CELLS = tuple(str(cell) for cell in chosen(()))
MATRIX_CELLS = 27  # of a slice: those of one target
DRAWN = "drawn"  # the live run that is no scenario: its seed draws the faults
LIVE = (DRAWN, *sorted(SCENARIOS))
WORKLOADS = tuple(sorted(BY_NAME))
HOUR_S = 3600.0


def works(folder: Path, mutants: Sequence[str], processes: int) -> tuple[Work, ...]:
    """folder: takes the reports of verbs that write one. mutants: all names. processes: of each verb with a pool."""
    pool = ("--processes", str(processes))
    return (
        *_simulations(pool),
        *_tables(folder, mutants, pool),
        *_tests(),
        *_inputs(),
        *_soaks(folder),
        *_real_processes(folder),
        *_pipelines(folder),
    )


def _simulations(pool: Command) -> tuple[Work, ...]:
    def swarm(from_seed: int, seconds: int, first: int, count: int) -> Command:
        return ("swarm", "--first", str(from_seed + first), "--seeds", str(count), "--seconds", str(seconds), *pool)

    return (
        Work(
            name="swarm",
            covers="the simulated cluster under faults, all profiles by turns, 60 virtual seconds a seed",
            unit="seeds",
            whole=50 * len(TURNS),
            slice=len(TURNS),
            command=lambda first, count: swarm(1, 60, first, count),
            share=2.0,
        ),
        Work(
            name="long-swarm",
            covers="the same for 120 virtual seconds a seed",
            unit="seeds",
            whole=10 * len(TURNS),
            slice=len(TURNS),
            command=lambda first, count: swarm(LONG_FROM, 120, first, count),
        ),
    )


def _tables(folder: Path, mutants: Sequence[str], pool: Command) -> tuple[Work, ...]:
    def mutation(first: int, count: int) -> Command:
        _, row = turn_and_row(first)
        report = str(folder / "mutants.md")
        return ("mutants", *mutants[row : row + count], "--seeds", str(MUTANT_SEEDS), "--report", report, *pool)

    def sweep(first: int, count: int) -> Command:
        turn, row = turn_and_row(first)
        chosen = [word for name in WORKLOADS[row : row + count] for word in ("--workload", name)]
        return ("crash-sweep", "--seed", str(turn + 1), *chosen, *pool)

    return (
        Work(
            name="mutants",
            covers="every known mistake is found; all fates are in mutants.md beside this report",
            unit="mutants",
            whole=max(1, len(mutants)),
            slice=10,
            command=mutation,
            limit_s=3 * HOUR_S,
            is_table=True,
        ),
        Work(
            name="crash-sweep",
            covers="the log engine, stopped at every call of a disk by every fault, workload by workload",
            unit="workloads",
            whole=len(WORKLOADS),
            slice=8,
            command=sweep,
            is_table=True,
        ),
        Work(
            name="crash-sample",
            covers="a few runs of each call and fault; no pair of them is missing",
            unit="seeds",
            whole=1,
            slice=1,
            command=lambda first, count: (
                "crash-sweep", "--sample", "--first", str(1 + first), "--seeds", str(count), *pool,
            ),
        ),
    )  # fmt: skip


def _tests() -> tuple[Work, ...]:
    return (
        Work(
            name="tests",
            covers="the tests that find least for their time, which CI leaves out",
            unit="rounds",
            whole=1,
            slice=1,
            command=lambda first, count: ("test", "nightly"),
            limit_s=HOUR_S,
            is_table=True,
        ),
        Work(
            name="spark-versions",
            covers="Spark's tests with every version of pyspark that the requirement allows",
            unit="rounds",
            whole=1,
            slice=1,
            command=lambda first, count: ("spark-versions",),
            is_table=True,
        ),
    )


def _inputs() -> tuple[Work, ...]:
    return (
        Work(
            name="fuzz",
            covers="any bytes at one whole node do no harm",
            unit="inputs",
            whole=10_000_000,
            slice=100_000,
            command=lambda first, count: ("fuzz", "--inputs", str(count), "--seed", str(1 + first)),
        ),
        Work(  # the inputs of a slice are shared among the parsers, so their numbers stay below first + count
            name="fuzz-parsers",
            covers="any bytes for every parser of files and records",
            unit="inputs",
            whole=10_000_000,
            slice=500_000,
            command=lambda first, count: ("fuzz-parsers", "--inputs", str(count), "--first", str(first)),
        ),
        Work(
            name="fuzz-security",
            covers="any bytes for SASL, PEM, names and rules of certificates, tokens and filters of access rules",
            unit="inputs of each",
            whole=1_000_000,
            slice=50_000,
            command=lambda first, count: (
                "fuzz-parsers", "--of", "quorumlog/security", "--each", str(count), "--first", str(first),
            ),
        ),
        Work(  # a sequence has several calls, so the seeds of a slice stay below first + count
            name="differential",
            covers="Apache Kafka and we answer the same requests alike, but for a table of differences with reasons",
            unit="calls",
            whole=20_000,
            slice=2_000,
            command=lambda first, count: ("differential", "--seed", str(first), "--count", str(count)),
        ),
    )  # fmt: skip


def _soaks(folder: Path) -> tuple[Work, ...]:
    def soak(name: str, first: int, *length: str) -> Command:
        return ("soak", *length, "--seed", str(1 + first), "--report", str(folder / "soak" / f"{name}-{1 + first}"))

    return (
        Work(
            name="soak-directories",
            covers="log directories stay bounded for a virtual year",
            unit="seeds",
            whole=10,
            slice=1,
            command=lambda first, _: soak("directories", first, "--virtual-days", "365"),
        ),
        Work(
            name="soak-cluster",
            covers="a simulated cluster stays bounded for a virtual day",
            unit="seeds",
            whole=10,
            slice=1,
            command=lambda first, _: soak("cluster", first, "--cluster", "--virtual-hours", "24"),
        ),
        Work(
            name="soak-processes",
            covers="real processes stay bounded for ten minutes",
            unit="seeds",
            whole=6,
            slice=1,
            command=lambda first, _: soak("processes", first, "--minutes", "10"),
            limit_s=HOUR_S,
        ),
    )


def _real_processes(folder: Path) -> tuple[Work, ...]:
    def live(first: int, _: int) -> Command:
        seed, name = str(1 + first), LIVE[first % len(LIVE)]
        kind = ("--minutes", "10") if name == DRAWN else ("--scenario", name)
        return ("live", *kind, "--seed", seed, "--report", str(folder / "live" / f"{name}-{seed}"))

    def loop(first: int, count: int) -> Command:
        return ("controller-loop", "--count", str(count), "--report", str(folder / "controller-loop" / str(first)))

    def transactions(first: int, count: int) -> Command:
        seed = str(1 + first // TRANSACTIONS)
        report = str(folder / "transactions" / seed)
        return ("transactions", "--count", str(count), "--seed", seed, "--report", report)

    def drill(first: int, _: int) -> Command:
        seed, kind = str(1 + first), ("--healthy", "--minutes", "30") if first % 2 else ()
        return ("drill", *kind, "--seed", seed, "--report", str(folder / "drill" / f"{seed}.md"))

    return (
        Work(
            name="drill",
            covers="check, explain, alert and console name eight faults and a drawn one in 30 s, and nothing else",
            unit="drills",
            whole=2,
            slice=1,
            command=drill,
            limit_s=HOUR_S,
        ),
        Work(
            name="live",
            covers="real processes and librdkafka's clients under drawn faults, and in every scenario",
            unit="runs",
            whole=len(LIVE),
            slice=1,
            command=live,
            limit_s=HOUR_S,
        ),
        Work(
            name="controller-loop",
            covers="the active controller is killed and stopped again and again",
            unit="faults",
            whole=100,
            slice=100,
            command=loop,
            limit_s=HOUR_S,
        ),
        Work(
            name="transactions",
            covers="list-append in transactions over processes that are killed; each slice is judged whole",
            unit="transactions",
            whole=1_000_000,
            slice=TRANSACTIONS,
            command=transactions,
            limit_s=HOUR_S,
        ),
    )


def _pipelines(folder: Path) -> tuple[Work, ...]:
    def pipeline(first: int, count: int) -> Command:
        seed = str(1 + first // KILLS)
        report = str(folder / "pipeline" / seed)
        return ("pipeline", "--kills", str(count), "--minutes", "100", "--seed", seed, "--report", report)

    def matrix(first: int, count: int) -> Command:
        turn, row = turn_and_row(first)
        found = ",".join(CELLS[row : row + count])
        report = str(folder / "pipeline-matrix" / f"{turn}-{row}")
        return ("pipeline", "--matrix", "--cells", found, "--seed", str(1 + turn), "--report", report)

    return (
        Work(
            name="pipeline",
            covers="a real Spark streams exactly once while its processes and ours are killed; each slice is judged",
            unit="kills",
            whole=3 * KILLS,
            slice=KILLS,
            command=pipeline,
        ),
        Work(
            name="pipeline-matrix",
            covers="each process of a pipeline dies at each place of a batch, with a commit that raises or is stopped",
            unit="cells",
            whole=len(CELLS),
            slice=MATRIX_CELLS,
            command=matrix,
            is_table=True,
        ),
    )
