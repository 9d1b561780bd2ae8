"""The mutants are complete: each diff applies, each has a killer and a line in the table; a few are killed here."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from jepsen.crash.runs import BY_NAME
from jepsen.mutation.killers import finding_of, is_assertion
from jepsen.mutation.mutant import KINDS, ROOT, Mutant, all_mutants, apply, copy_tree, touched_by
from jepsen.mutation.table import SURVIVED, TABLE, Row, read_report, summary, write_report
from jepsen.mutation.trial import run_mutants
from jepsen.sim.job import QUORUM
from jepsen.sim.profiles.plan import PROFILES
from jepsen.sim.quorum.plan import STRIKES
from jepsen.swarm import TURNS

MUTANTS = all_mutants()
IDS = [mutant.name for mutant in MUTANTS]
RULES_PAGES = "".join((ROOT / "docs" / name).read_text() for name in ("kraft-rules.md", "group-rules.md"))
"""They name the mutants that leave a rule out."""


def test_none_is_missing() -> None:
    assert len(MUTANTS) >= 40


@pytest.mark.parametrize("mutant", MUTANTS, ids=IDS)
def test_the_diff_applies(mutant: Mutant) -> None:
    assert apply(mutant, ROOT, only_try=True) == ""


@pytest.mark.parametrize("mutant", MUTANTS, ids=IDS)
def test_its_killer_is_there(mutant: Mutant) -> None:
    assert mutant.what and (mutant.expect or mutant.kind == "test")
    if mutant.kind == "sim":
        assert mutant.profile in TURNS
    elif mutant.kind == "crash":
        assert set(mutant.workloads) <= set(BY_NAME)
    elif mutant.kind == "soak":
        assert 1 <= float(mutant.where) <= SOAK_DAYS_MAX
    else:
        path, *names = mutant.where.partition("[")[0].split("::")
        assert all(
            re.search(rf"^ *(class|def|async def)? ?{name}\b", (ROOT / path).read_text(), re.M) for name in names
        )


def test_no_two_are_the_same() -> None:
    assert [diff for diff, count in Counter(mutant.diff for mutant in MUTANTS).items() if count > 1] == []


@pytest.mark.parametrize("profile", sorted({mutant.profile for mutant in MUTANTS if mutant.kind == "sim"} - {"swarm"}))
def test_the_profile_of_a_mutant_is_a_class_of_faults(profile: str) -> None:
    """One fault alone would be made for the mutant that it kills."""
    assert len(set(STRIKES if profile == QUORUM else PROFILES[profile].faults)) > 1


# --- the table ---


def test_every_mutant_is_in_the_table_and_was_killed() -> None:
    report = read_report(TABLE)
    assert [row.name for row in report] == IDS
    rows = {row.name: row for row in report}
    for mutant in MUTANTS:
        row = rows[mutant.name]
        assert (row.what, row.killer) == (mutant.what, mutant.killer), "run ./dev mutants NAME --report docs/mutants.md"
        assert row.by != SURVIVED and row.runs <= 200
    assert TABLE.read_text().endswith(summary(list(rows.values())))


SOAK_DAYS_MAX = 10  # a leak shows after a few days, or the bounds are loose
LEAST_SHARE = 0.6  # killed by a profile that `./dev swarm` runs
LEAST_OF_ONE_PROFILE = 40  # killed by the profile `swarm`

# Whole rooms that the profile `swarm` does not enter: Spark, TLS and commands are not there, nobody looks at metrics,
# pages, events or records, and clients have no code of an application.
ROOMS_OF_OTHERS = (
    "storage/", "quorumlog/spark/", "quorumlog/security/", "cli/", "console/", "server/quorumlog_server/metrics/",
    "server/quorumlog_server/monitoring/",
    "quorumlog/watch/", "quorumlog/explaining/", "quorumlog/events/", "quorumlog/client/looking/",
    "quorumlog/client/plugins/", "quorumlog/rolling/", "quorumlog/schemas/", "jepsen/drill/",
)  # fmt: skip
# What the profile `swarm` does not run: of these files it imports the names, and makes some objects that stay idle.
# `./dev swarm --functions` lists those of broker and quorum.
NOT_OF_THE_SWARM = (
    "quorumlog/records/open_transactions.py",  # imports and restores, which an operator's commands begin
    # It has no groups; other profiles have few members that are late, and none that is described.
    "broker/quorumlog_broker/coordinator/groups/consumer/describe.py",
    "broker/quorumlog_broker/coordinator/groups/classic/membership.py",
    "quorumlog/client/group/offsets.py",
    "broker/quorumlog_broker/coordinator/groups/consumer/checks.py",
    "broker/quorumlog_broker/coordinator/groups/consumer/heartbeat.py",
    "broker/quorumlog_broker/coordinator/groups/offsets/of_consumer_groups.py",
    "broker/quorumlog_broker/coordinator/groups/consumer/reconcile.py",
    "broker/quorumlog_broker/coordinator/groups/consumer/sessions.py",
    "broker/quorumlog_broker/coordinator/groups/consumer/state.py",
    "broker/quorumlog_broker/coordinator/groups/consumer/subscriptions.py",
    "broker/quorumlog_broker/coordinator/groups/consumer/targets.py",
    "broker/quorumlog_broker/coordinator/groups/migration.py",
    # The names of its topics are ASCII, and so are those of simulated groups.
    "broker/quorumlog_broker/coordinator/placement.py",
    "broker/quorumlog_broker/api/handlers/features_in_use.py",  # levels change past the coordinators
    "broker/quorumlog_broker/directory_return.py",  # no failed directory comes back
    "broker/quorumlog_broker/replicas/directory_returns.py",
    "broker/quorumlog_broker/produce/conversion.py",  # its producers do not compress
    "broker/quorumlog_broker/produce/import_path.py",  # only an operator's command starts an import
    "quorumlog/client/carried.py",  # it has no tasks of Spark, which carry options
    "quorumlog/client/security/sources.py",  # its options name no file and no variable
    "server/quorumlog_server/config/providers.py",
    "server/quorumlog_server/process/http_access.py",  # nobody asks for a page
    "server/quorumlog_server/directories/directory_start.py",  # no disk hangs while a simulated node starts
    "server/quorumlog_server/directories/replica_directories.py",
    "quorum/quorumlog_quorum/controller/requests/imports.py",
    "quorum/quorumlog_quorum/controller/requests/unregister_broker.py",  # only an operator's command forgets a broker
    "quorum/quorumlog_quorum/offline/lost_majority.py",  # only an operator's command recovers a lost majority
    "quorumlog/client/fetching/position.py",  # its readers do not leave out aborted transactions
    "quorumlog/client/cluster/link.py",  # its clients name no cluster
    "quorumlog/records/format/compression.py",  # its producers do not compress
    "quorumlog/records/format/legacy.py",  # its producers send no old message formats
    "broker/quorumlog_broker/fetch/chunk_stream.py",  # its readers stream at its end only, when nothing fails
    "quorumlog/messages/chunk_place.py",
    "quorumlog/client/fetching/chunk_stream.py",
    "quorumlog/client/batches/arrow_split.py",  # its producers send no tables
    "server/quorumlog_server/config/named_addresses.py",  # its network has no sockets
    "server/quorumlog_server/edge/real_edges.py",
    "server/quorumlog_server/edge/listener_keys.py",
    "quorumlog/rpc/grpc/client.py",
    "quorumlog/rpc/grpc/server.py",
    "quorumlog/rpc/grpc/stream.py",
    "quorumlog/rpc/grpc/channel.py",
    "quorumlog/rpc/grpc/server_security.py",
    "quorumlog/rpc/serving/local_connection.py",
    "quorumlog/testing/processes.py",  # its nodes are no processes
    "quorumlog/wire/routing.py",
    "quorumlog/wire/serving/gate.py",  # its listeners are plain
    "quorumlog/wire/serving/secured.py",
    "quorumlog/wire/serving/tls_transport.py",
    "server/quorumlog_server/config/listener_security.py",
    "quorumlog/proof/node_certificate.py",  # nobody has a certificate
    "quorumlog/client/security/options.py",  # nobody logs in
    "quorumlog/wire/calling/login.py",
    "quorumlog/wire/calling/login_record.py",
    "broker/quorumlog_broker/api/handlers/scram_credentials.py",  # it has no users, quotas or access rules yet
    "broker/quorumlog_broker/api/quotas.py",
    "quorum/quorumlog_quorum/metadata/quotas_in_force.py",
    "quorum/quorumlog_quorum/metadata/rules_in_force.py",
    "quorumlog/rpc/serving/request_time.py",
    "quorum/quorumlog_quorum/controller/requests/alter_scram.py",
    "quorumlog/rpc/envelope.py",
    # Nobody asks how long requests take, and no operator cuts links.
    "quorumlog/rpc/cuttable.py",
    "quorumlog/rpc/serving/request_parts.py",
    "quorumlog/rpc/serving/slow_log.py",
    "quorumlog/testing/cuts.py",
    "quorumlog/in_sync.py",
    "quorumlog/wire/serving/gate.py",  # no stranger comes to its listeners
    "quorumlog/client/errors.py",
)
NOT_BY_ITS_CLIENTS = (  # mistakes in what only other clients do, in files that it runs
    "1000-series-before-the-login",  # nobody looks at what is counted
    "1001-counts-of-a-deleted-topic-kept",
    "1005-offset-of-a-former-topic-is-lag",
    "1007-unread-topics-are-lag",
    "1034-duration-from-the-wrong-end",  # they have no such reset
    "1036-refused-record-passed-over",
    "1058-full-disk-is-only-offline",  # nobody asks a broker for its directories
    "1067-cancelled-poll-loses-records",  # their records are bytes
    "1076-sound-while-damage-is-there",  # nobody reads the events of a check
    "245-leader-during-an-import",  # only an operator's command starts one
    "572-partitions-added-to-an-import",
    "718-leader-of-another-life",  # nobody tells its readers who leads, as a plan of Spark's does
    "719-told-leader-outlives-its-topic",
    "776-row-above-the-topics-limit",  # its producers send no tables
    "777-count-makes-a-topic",
    "1005-offset-of-a-former-topic-is-lag",  # nobody scrapes it
    "1006-added-replicas-are-missed",
    "1007-unread-topics-are-lag",
    "752-epoch-for-markers-given",  # no child of its clients lives for 32,766 epochs
    "754-open-group-expires",  # nor any group for 90 days
    "756-child-of-the-other-time-out",  # its children have seconds
    "758-group-above-the-limit",  # it has no 10,000 groups
    "787-child-ended-by-a-client",  # none aborts a transaction in one partition
    "788-marker-of-the-next-child",
    "789-silence-taken-for-no",
    "790-child-late-by-the-others-time",  # none reads the metrics
    "791-late-without-an-answer",
    "793-foreign-ids-tried-again",  # none has an id that looks like a child's
    "794-texts-for-each-child",  # what it says is the same
    "844-joint-without-epochs",  # it turns both features off together
    "927-tls-on-the-plain-socket",  # its listeners are plain
    "930-old-certificate-kept",
    "933-proof-instead-of-a-certificate",  # nor has anybody a certificate
    "937-clear-bytes-under-tls",
    "958-address-of-before-the-login",  # nor a login before gRPC
    "969-mutations-counted-for-nobody",  # nobody has a quota of changes
    "983-controller-trusts-brokers",  # it has no rules that a broker could be behind with
    "993-settings-refused-in-their-order",  # each setting that it sends has a value
    "944-throttle-before-the-answer",  # it has no quotas yet
    "860-attached-nodes-stopped",  # nobody types commands
    "1048-hold-without-end",  # it takes cuts of a moment
    "1049-held-by-turns",  # by one operator
    "1050-open-transaction-restored",  # and restores none
    "1051-producer-not-fenced",
    "1052-hold-ignored-by-retention",
    "1053-checksum-of-a-file-not-compared",
    "1054-compaction-passes-the-cut",  # its logs are whole at the end, so nothing is compacted beside its backups
    "1055-lapsed-pause-renewed",  # it has no run of ten minutes
)


def test_simulations_kill_most_of_those_that_tests_of_storage_and_of_rules_do_not() -> None:
    """The crash sweep and the tests of storage may kill mistakes of storage; a rule without its code fails its test.

    `./dev swarm` runs all profiles by turns, and must kill most of the others, if it runs the code: a mistake in
    `NOT_OF_THE_SWARM` alone does not count. The profile `swarm`, which draws among all faults, has a count of its own.
    """
    left = [m for m in MUTANTS if m.kind == "sim" or not (is_left_to_tests(m) or m.name in RULES_PAGES)]
    killers = [row.killer for row in read_report(TABLE) if row.by != SURVIVED]
    assert sum(killer in [f"sim {profile}" for profile in TURNS] for killer in killers) >= LEAST_SHARE * len(left)
    assert killers.count("sim swarm") >= LEAST_OF_ONE_PROFILE


def is_left_to_tests(mutant: Mutant) -> bool:
    if mutant.name in NOT_BY_ITS_CLIENTS:
        return True
    paths = changed_by(mutant)
    return all(path.startswith(ROOMS_OF_OTHERS) or path in NOT_OF_THE_SWARM for path in paths)


def changed_by(mutant: Mutant) -> list[str]:
    return re.findall(r"^\+\+\+ b/(\S+)", mutant.diff, re.MULTILINE)


def test_what_the_swarm_does_not_run_is_there_and_has_a_mutant() -> None:
    """An entry without one would only wait to excuse the next."""
    assert set(NOT_OF_THE_SWARM) <= {path for mutant in MUTANTS for path in changed_by(mutant)}
    assert set(NOT_BY_ITS_CLIENTS) <= {mutant.name for mutant in MUTANTS}


@pytest.mark.parametrize("name", ["report.md", "report.json"])
def test_a_later_run_replaces_its_rows_and_keeps_the_others(name: str, tmp_path: Path) -> None:
    path, known = tmp_path / name, ["01-one", "02-two"]
    one, two = (
        Row("01-one", "first", "sim swarm", SURVIVED, 200, 9),
        Row("02-two", "second", "crash roll", "hole", 1, 1),
    )
    write_report(path, [one, two, Row("00-gone", "none", "sim swarm", "x", 1, 1)], known)
    killed = Row("01-one", "first", "sim swarm", "commit-rule", 3, 5)
    write_report(path, [killed], known)
    assert read_report(path) == [killed, two]


# --- for real ---

QUICK_ONES = ["98-short-read-served"]
SIMULATED = "02-ack-before-synced"
OF_ALL_KINDS = [*QUICK_ONES, SIMULATED, "291-deleted-never-freed", "74-acked-by-one-disk", "96-lines-before-the-name"]
SAMPLE_SEEDS = 1


@pytest.mark.timeout(300)
def test_a_sample_is_killed(tmp_path: Path) -> None:
    """The whole folder takes an hour: `./dev mutants`."""
    must_be_killed(QUICK_ONES, tmp_path)


@pytest.mark.timeout(300)
def test_one_of_each_kind_of_killer_is_killed(tmp_path: Path) -> None:
    must_be_killed(OF_ALL_KINDS, tmp_path)
    assert {mutant.kind for mutant in MUTANTS if mutant.name in OF_ALL_KINDS} == set(KINDS)


def must_be_killed(names: list[str], folder: Path) -> None:
    told: list[str] = []
    report = folder / "report.json"
    assert run_mutants(names, SAMPLE_SEEDS, 1, report, say=told.append) == 0, told
    assert sorted(row.name for row in read_report(report)) == sorted(names)


# --- what counts ---


def test_a_diff_that_does_not_apply_is_reported(tmp_path: Path) -> None:
    copy_tree(tmp_path)
    assert apply(MUTANTS[0], tmp_path) == ""
    assert "no longer applies" in apply(MUTANTS[0], tmp_path)


def test_an_unknown_name_is_refused() -> None:
    told: list[str] = []
    assert run_mutants(["99-nothing"], 1, 1, say=told.append) == 1
    assert told == ["no such mutant: 99-nothing"]


def test_a_crash_kills_no_mutant() -> None:
    crash = {"name": "node-crashed", "text": "", "at_ns": 1}
    lost = {"name": "lost-write", "text": "", "at_ns": -1}
    assert finding_of({"verdict": "INVALID", "findings": [crash]}) == ""
    assert finding_of({"verdict": "INVALID", "findings": [crash, lost]}) == "lost-write"
    assert finding_of({"verdict": "BROKEN", "findings": [lost]}) == ""


@pytest.mark.parametrize(
    ("told", "counts"),
    [
        ("E   assert 1 == 2\n\ntests/storage/test_log.py:12: AssertionError", True),
        ("E   Failed: DID NOT RAISE\n\ntests/storage/test_log.py:12: Failed", True),
        ("tests/storage/test_log.py:12: \nE   AssertionError\nstorage/log.py:3: AssertionError", False),
        ("E   KeyError: 1\n\ntests/storage/test_log.py:12: KeyError", False),
        ("", False),
    ],
    ids=["assertion", "no exception", "assertion of production", "another error", "nothing"],
)
def test_only_an_assertion_of_the_test_counts(told: str, counts: bool) -> None:
    assert is_assertion(told) == counts


def test_a_change_concerns_the_mutants_of_its_file_their_diffs_and_their_tests() -> None:
    def named(*changed: str) -> list[str]:
        return [mutant.name for mutant in touched_by(MUTANTS, frozenset(changed))]

    in_seal = named("storage/quorumlog_storage/directory/partition_log.py")
    assert {"250-seal-unsynced", "320-sealed-start-first"} < set(in_seal) and len(in_seal) < len(MUTANTS)
    assert named("jepsen/mutants/01-vote-before-durable.diff") == ["01-vote-before-durable"]
    assert "249-import-at-another-end" in named("tests/broker/produce/test_import_path.py")
    assert named("README.md") == []
