"""`./dev swarm --functions`: the functions of broker, quorum and storage that a few seeds never run.

Some may stay unreached, each for a reason (`MAY_STAY`). Of all others a share must run (`LEAST_SHARE`), so that no
simulation grows narrow without notice.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence

from jepsen.functions.defined import defined_functions
from jepsen.swarm import SEED_LIMIT_S, profile_of

LEAST_SHARE = 0.90
MAY_STAY: dict[str, str] = {  # by the beginning of a function's name: why no simulation runs it
    "storage/edge/": "real disks and threads: the simulation replaces the edges",
}

Say = Callable[[str], None]


def functions_of_seeds(seeds: Iterable[int], profile: str | None, seconds: int) -> list[str]:
    """The functions that ran in simulations of these seeds. profile: see `profile_of`. Raises RuntimeError."""
    ran: dict[str, None] = {}
    for turn, seed in enumerate(seeds):
        ran.update(dict.fromkeys(_functions_of(seed, profile_of(turn, profile), seconds)))
    return list(ran)


def _functions_of(seed: int, profile: str, seconds: int) -> list[str]:
    options = ["--seed", str(seed), "--profile", profile, "--seconds", str(seconds), "--json"]
    command = [sys.executable, "-m", "jepsen.functions.traced_sim", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SEED_LIMIT_S)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"seed {seed} of {profile}: {done.stderr[-500:]}")
    found: list[str] = json.loads(done.stdout)["functions"]
    return found


def may_stay(function: str) -> bool:
    return any(function.startswith(beginning) for beginning in MAY_STAY)


def unreached(defined: Sequence[str], ran: Collection[str]) -> list[str]:
    """Those that ought to run and did not, in the order of `defined`."""
    return [function for function in defined if function not in ran and not may_stay(function)]


def share(defined: Sequence[str], ran: Collection[str]) -> float:
    """Of the functions that ought to run: how many did, 0 to 1."""
    wanted = [function for function in defined if not may_stay(function)]
    return 1 - len(unreached(defined, ran)) / len(wanted)


def report(defined: Sequence[str], ran: Collection[str]) -> list[str]:
    """Lines: what never ran, grouped by file with counts, and the share."""
    by_file: dict[str, list[str]] = {}
    for function in unreached(defined, ran):
        path, _, name = function.partition(":")
        by_file.setdefault(path, []).append(name)
    counts = {path: sum(one.startswith(f"{path}:") for one in defined) for path in by_file}
    lines = [f"{path}: {len(names)} of {counts[path]}: {', '.join(names)}" for path, names in by_file.items()]
    staying = [function for function in defined if may_stay(function)]
    surprises = [function for function in staying if function in ran]
    if surprises:
        lines.append(f"these run, although they may stay unreached: {', '.join(surprises)}")
    missing = sum(map(len, by_file.values()))
    lines.append(
        f"{len(defined) - len(staying) - missing} of {len(defined) - len(staying)} functions ran, "
        f"{share(defined, ran):.1%}, at least {LEAST_SHARE:.0%} must; {len(staying)} more may stay unreached"
    )
    return lines


def tell_unreached(first: int, seeds: int, profile: str | None, seconds: int, say: Say = print) -> int:
    """Run, report, and return 1 if too few functions ran. profile: see `profile_of`."""
    started = time.monotonic()
    ran = frozenset(functions_of_seeds(range(first, first + seeds), profile, seconds))
    defined = defined_functions()
    for line in report(defined, ran):
        say(line)
    say(f"{seeds} seeds, {time.monotonic() - started:.0f} s")
    return 0 if share(defined, ran) >= LEAST_SHARE else 1
