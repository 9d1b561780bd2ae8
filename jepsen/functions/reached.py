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
from fnmatch import fnmatchcase

from jepsen.functions.defined import defined_functions
from jepsen.swarm import SEED_LIMIT_S, profile_of

LEAST_SHARE = 0.88
MAY_STAY: dict[str, tuple[str, ...]] = {  # why no simulation has to run it -> patterns of names, as for a shell
    "real disks and threads; the simulation replaces the edges": ("storage/edge/*",),
    "answers that only describe; tests/broker/api and tests/scenarios ask for them": (
        "broker/api/handlers/describe_*",
        "broker/api/handlers/find_coordinator.py:*",
        "broker/api/handlers/list_groups.py:*",
        "broker/replicas/directory_report.py:*",
        "quorum/metadata/dump.py:*",
        "quorum/raft/describe.py:*",
    ),
    "asked by other clients than ours; tests/broker/api and tests/wire ask for them": (
        "broker/api/handlers/offset_for_leader_epoch.py:*",
        "broker/fetch/epoch_ends.py:*",
        "broker/fetch/offset_queries.py:OffsetQueries.end_of_epoch",
        "broker/fetch/session.py:FetchSession.targets",
    ),
    "for people, for tests and for metrics": (
        "*.__len__",
        "*.__str__",
        "*.__repr__",
        "*.check_invariants",
        "broker/replicas/registry.py:Registry.leader_count",
        "broker/replicas/opening.py:Opening.left",
        "broker/replicas/findings.py:RecoveryFindings.all",
        "quorum/announcements.py:Announcements.delivered",
        "quorum/committed.py:Delivery.delivered",
        "quorum/controller/service.py:ControllerService.active",
        "quorum/controller/service.py:ControllerService.tip",
        "quorum/driver.py:Driver.delivered",
        "quorum/driver.py:Driver.is_leader",
        "quorum/driver.py:Driver.leader",
        "quorum/metadata/image.py:Image.state_hash_bytes",
        "quorum/metadata/loader.py:MetadataLoader.high_watermark",
        "quorum/metadata/delta.py:Delta.changed_topics",
        "quorum/metadata/delta.py:Delta.metadata_version",
        "storage/log.py:Log.size_bytes",
        "storage/log.py:Log.append",
        "storage/offset_files.py:OffsetFile.offsets",
        "storage/offset_index.py:OffsetIndexFile.size",
    ),
    "our own mistakes and files of strangers; a simulated node that met one would be a finding": (
        "quorum/driver.py:Driver._fail*",
        "quorum/metadata/delta.py:ReplayError.__init__",
        "quorum/metadata/features.py:describe_range",
        "quorum/metadata/frame.py:_RecordType.name",
        "quorum/metadata/unsupported.py:*",
        "quorum/raft/events.py:NotLeader.__init__",
        "quorum/raft/following.py:*.__init__",
        "quorum/raft/quorum_state.py:*.__init__",
        "storage/*:*Closed.__init__",
        "storage/*:*Formatted.__init__",
        "storage/*:Bad*.__init__",
        "storage/*:CaseInsensitive.__init__",
        "storage/*:Corrupt*.__init__",
        "storage/*:DirectoryLocked.__init__",
        "storage/*:TooManyCuts.__init__",
        "storage/*:UnexpectedAppend.__init__",
        "storage/*:UnknownFormat.__init__",
        "storage/*:WrongTopicId.__init__",
        "storage/directory_life.py:DirectoryLife._invalid",
        "storage/segment_scan.py:_is_ours_but_for_the_magic",
        "storage/properties.py:_escaped_char",
    ),
    "nothing uses it yet: compaction, transactions and snapshots of metadata will": (
        "storage/batch.py:StoredBatch.*",
        "storage/fetch_rule.py:_needs_snapshot",
        "storage/file_handle.py:FileHandle.rename",
        "storage/log_file.py:LogFile.rename",
        "storage/offset_index.py:OffsetIndexFile.rename",
        "storage/segment.py:Segment.rename",
    ),
    "what an operator does to a node that is stopped; tests/server does it": (
        "quorum/raft/quorum_state.py:renew_quorum_state",
    ),
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
    return any(fnmatchcase(function, pattern) for patterns in MAY_STAY.values() for pattern in patterns)


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
