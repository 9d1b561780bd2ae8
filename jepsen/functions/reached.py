"""`./dev swarm --functions`: the functions of broker, quorum and storage that one seed of each profile never runs.

Some may stay unreached, each for a reason (`MAY_STAY`). Of all others a share must run (`LEAST_SHARE`), so that no
simulation grows narrow without notice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from fnmatch import fnmatchcase
from typing import Any

from jepsen.functions.defined import defined_functions
from jepsen.pool.pool import results
from jepsen.sim.job import Job
from jepsen.swarm import profile_of

PROCESSES = 2

LEAST_SHARE = 0.88
MAY_STAY: dict[str, tuple[str, ...]] = {  # why no simulation has to run it -> patterns of names, as for a shell
    "real disks and threads; the simulation replaces the edges": ("storage/quorumlog_storage/edge/*",),
    "answers that only describe; tests/broker/api and tests/scenarios ask for them": (
        "broker/quorumlog_broker/api/handlers/describe_*",
        "broker/quorumlog_broker/api/handlers/find_coordinator.py:*",
        "broker/quorumlog_broker/api/handlers/group_admin.py:*",
        "broker/quorumlog_broker/coordinator/groups/consumer/describe.py:*",
        "broker/quorumlog_broker/coordinator/transactions/describe.py:*",
        "broker/quorumlog_broker/fetch/range_search.py:*",
        "broker/quorumlog_broker/replicas/producer_report.py:*",
        "broker/quorumlog_broker/replicas/directory_report.py:*",
        "quorum/quorumlog_quorum/metadata/dump.py:*",
        "storage/quorumlog_storage/log/log_ranges.py:*",
        "storage/quorumlog_storage/log/record_count.py:*",
        "storage/quorumlog_storage/log/record_counts.py:*",
        "broker/quorumlog_broker/api/handlers/count_records.py:*",
        "quorum/quorumlog_quorum/raft/describe.py:*",
    ),
    "asked by other clients than ours; tests/broker/api and tests/wire ask for them": (
        "broker/quorumlog_broker/api/handlers/acls.py:*",
        "broker/quorumlog_broker/api/handlers/offset_for_leader_epoch.py:*",
        "broker/quorumlog_broker/fetch/offset_queries.py:*",
        "broker/quorumlog_broker/fetch/offset_queries.py:OffsetQueries.end_of_epoch",
        "broker/quorumlog_broker/fetch/session.py:FetchSession.targets",
    ),
    "for people, for tests and for metrics": (
        "broker/quorumlog_broker/coordinator/groups/consumer/state.py:ConsumerGroups.copy",
        "broker/quorumlog_broker/coordinator/groups/offsets/table.py:OffsetTable.group_ids",
        "broker/quorumlog_broker/coordinator/groups/shard.py:GroupShard.has_offset",
        "broker/quorumlog_broker/coordinator/groups/shard.py:GroupShard.offsets_read",
        "broker/quorumlog_broker/coordinator/groups/shard.py:GroupShard.states",
        "broker/quorumlog_broker/coordinator/groups/whole_groups.py:WholeGroups.topics_read",
        "broker/quorumlog_broker/coordinator/runtime/group_lags.py:*",
        "broker/quorumlog_broker/coordinator/transactions/shard.py:TransactionShard.open_count",
        "broker/quorumlog_broker/coordinator/transactions/state/table.py:TransactionTable.open_count",
        "broker/quorumlog_broker/replication/fetch_position.py:FetchPosition.lag",
        "broker/quorumlog_broker/replication/fetcher.py:Fetcher.max_lag",
        "quorum/quorumlog_quorum/metadata/partition_counts.py:*",
        "*.__len__",
        "*.__str__",
        "*.__repr__",
        "*.check_invariants",
        "broker/quorumlog_broker/replicas/registry.py:Registry.leader_count",
        "broker/quorumlog_broker/replicas/logs_to_open.py:LogsToOpen.left",
        "broker/quorumlog_broker/replicas/recovery_findings.py:RecoveryFindings.all",
        "quorum/quorumlog_quorum/node/announcements.py:Announcements.delivered",
        "quorum/quorumlog_quorum/node/committed.py:Delivery.delivered",
        "quorum/quorumlog_quorum/controller/shell/service.py:ControllerService.active",
        "quorum/quorumlog_quorum/controller/shell/service.py:ControllerService.tip",
        "quorum/quorumlog_quorum/controller/shell/service.py:ControllerService.unclean_recoveries",
        "quorum/quorumlog_quorum/node/driver.py:Driver.is_leader",
        "quorum/quorumlog_quorum/metadata/image.py:Image.state_hash_bytes",
        "quorum/quorumlog_quorum/metadata/loader.py:MetadataLoader.high_watermark",
        "quorum/quorumlog_quorum/metadata/delta.py:Delta.metadata_version",
        "storage/quorumlog_storage/log/log.py:Log.size_bytes",
        "storage/quorumlog_storage/log/log.py:Log.append",
        "storage/quorumlog_storage/directory/offset_files.py:OffsetFile.offsets",
        "storage/quorumlog_storage/segment/index_file.py:IndexFile.size",
    ),
    "our own mistakes and files of strangers; a simulated node that met one would be a finding": (
        "broker/quorumlog_broker/logdirs/log_directory.py:_crashed",
        "quorum/quorumlog_quorum/node/driver.py:Driver._fail*",
        "quorum/quorumlog_quorum/metadata/frame.py:ReplayError.__init__",
        "quorum/quorumlog_quorum/metadata/features.py:describe_range",
        "quorum/quorumlog_quorum/metadata/unsupported.py:*",
        "quorum/quorumlog_quorum/raft/events.py:NotLeader.__init__",
        "quorum/quorumlog_quorum/raft/following.py:*.__init__",
        "quorum/quorumlog_quorum/raft/quorum_state.py:*.__init__",
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
        "storage/quorumlog_storage/writer/directory_life.py:DirectoryLife._invalid",
        "storage/quorumlog_storage/recovery/segment_scan.py:_is_ours_but_for_the_magic",
        "storage/quorumlog_storage/files/properties.py:_escaped_char",
    ),
    "transactions that a compaction, a recovery or a reader of committed records meets on disk; tests/storage do": (
        "broker/quorumlog_broker/fetch/partition_read.py:_aborted",
        "broker/quorumlog_broker/fetch/read_log.py:read_committed_from_disk",
        "storage/quorumlog_storage/cleaning/batch_filter.py:BatchFilter._marker",
        "storage/quorumlog_storage/segment/transaction_index.py:*",
        "storage/quorumlog_storage/producers/producer_state.py:check_marker",
        "storage/quorumlog_storage/producers/*",
    ),
    "imports and exports of other clusters' logs; tests/formats, tests/quorum and tests/broker carry them out": (
        "broker/quorumlog_broker/api/handlers/imports.py:*",
        "broker/quorumlog_broker/produce/import_path.py:*",
        "quorum/quorumlog_quorum/controller/requests/imports.py:*",
        "storage/quorumlog_storage/foreign/*",
        "storage/quorumlog_storage/directory/partition_log.py:PartitionLog.seal",
    ),
    "the auditor reads the files of nodes that are stopped; tests/storage and the crash sweep run it": (
        "storage/quorumlog_storage/audit/*",
    ),
    "what an operator asks of a node; tests/broker/moves, tests/storage/test_moves.py and tests/live ask for it": (
        "broker/quorumlog_broker/api/handlers/alter_replica_log_dirs.py:*",
        "broker/quorumlog_broker/api/handlers/bring_log_dir_online.py:*",
        "broker/quorumlog_broker/api/handlers/quota_use.py:*",
        "broker/quorumlog_broker/api/handlers/events.py:*",
        "broker/quorumlog_broker/logdirs/found_futures.py:*",
    ),
    "events of records for people; tests/quorum/metadata/test_record_events.py makes one of each": (
        "quorum/quorumlog_quorum/metadata/record_events.py:*",
    ),
    "what is asked before a level falls; tests/broker/api and tests/live lower levels": (
        "broker/quorumlog_broker/api/handlers/features_in_use.py:*",
    ),
    "the compiled form of the work with keys; tests/storage compare its answers with those of the plain form": (
        "storage/quorumlog_storage/cleaning/compiled_keys.py:*",
        "storage/quorumlog_storage/cleaning/key_kernels.py:*",
    ),
    "what an operator does to a node that is stopped; tests/server and tests/sim/test_lost_majority.py do it": (
        "quorum/quorumlog_quorum/offline/lost_majority.py:*",
        "quorum/quorumlog_quorum/offline/metadata_survey.py:*",
        "quorum/quorumlog_quorum/raft/quorum_state.py:renew_quorum_state",
    ),
}

Say = Callable[[str], None]


def functions_of_seeds(seeds: Iterable[int], profile: str | None, seconds: int) -> list[str]:
    """The functions that ran in simulations of these seeds. profile: see `profile_of`. Raises RuntimeError."""
    jobs = (
        Job(seed=seed, profile=profile_of(turn, profile), seconds=seconds, noting=True)
        for turn, seed in enumerate(seeds)
    )
    with closing(results(jobs, PROCESSES, os.environ)) as found:  # an interrupt ends all processes at once
        return functions_of(found)


def functions_of(found: Iterable[tuple[Job, Mapping[str, Any]]]) -> list[str]:
    """The functions that ran in any of these jobs. Raises RuntimeError for one that gave no result."""
    ran: dict[str, None] = {}
    for job, result in found:
        if "functions" not in result:
            raise RuntimeError(f"seed {job.seed} of {job.profile}: {result['findings'][:1]}")
        ran.update(dict.fromkeys(result["functions"]))
    return list(ran)


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
