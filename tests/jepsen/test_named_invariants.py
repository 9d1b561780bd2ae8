"""The 32 invariants of groups and transactions, and the 8 of joint transactions: each is looked at in the simulation.

The names are those of findings, and stand in the code as they are told.
"""

from __future__ import annotations

from functools import cache

import pytest

from jepsen.mutation.mutant import ROOT
from tests.rules import all_rules

INVARIANTS: dict[int, tuple[str, tuple[str, ...]]] = {
    1: ("one active core in each internal partition and leader epoch", ("one-coordinator",)),
    2: ("a core's state is a fresh replay of its log", ("state-is-replay",)),
    3: ("no success before the high watermark, none across epochs", ("answered-before-commit", "one-coordinator")),
    4: ("an acknowledged commit is in every later fetch", ("group-commit-lost",)),
    5: (
        "a fetch shows nothing that a failover can undo",
        ("group-offset-undone", "group-offset-invented", "group-deleted-offset-returns"),
    ),
    6: ("generations rise, over failovers too", ("group-number-falls",)),
    7: (
        "in a generation one leader, one protocol, one list of members",
        ("group-generation-twice", "group-two-leaders", "group-two-owners", "rebalance-awaits"),
    ),
    8: ("a member gets what the leader sent for it", ("group-assignment-changed",)),
    9: ("no call is parked beyond its timers", ("group-call-parked",)),
    10: ("there are no members exactly in Empty and Dead", ("members-of-a-state",)),
    11: ("the map of owners has one owner for a partition, and equals its recomputation", ("owner-map",)),
    12: ("no partition is owned by two clients", ("group-units-shared", "revocation-fences")),
    13: ("member epoch <= assignment epoch <= group epoch", ("group-epochs",)),
    14: ("asked to revoke exactly while there is something to revoke", ("unrevoked",)),
    15: ("a quiet group converges within some heartbeats", ("consumer-group-converges",)),
    16: ("a target gives each partition once, to subscribers, fairly", ("target-assignment",)),
    17: ("no commit of a fenced member", ("group-commit-fenced", "group-owner-fenced")),
    18: ("a static restart within its session begins no generation", ("static-restart", "paused-keeps")),
    19: ("expiry takes nothing that is subscribed to or pending", ("expiry", "deleted-in-use")),
    20: ("upgrade and downgrade keep offsets and owners", ("group-commit-lost", "group-units-shared")),
    21: ("a status moves as it may, and epochs never fall", ("transaction-status", "epoch-fell", "zombie-commit")),
    22: ("all partitions of a transaction end as its decision says", ("marker-undecided",)),
    23: (
        "a complete transaction is open nowhere",
        ("complete-without-a-marker", "marker-missing", "transaction-open"),
    ),
    24: ("an open transaction is known to its coordinator, or ends", ("transaction-open",)),
    25: ("the last stable offset is at most the high watermark, and never falls", ("last-stable-offset",)),
    26: (
        "a reader of committed records sees each once, in order, and no other",
        ("lost-write", "duplicate", "unordered-read", "skipped-read", "aborted-read"),
    ),
    27: ("no data of an ended epoch behind its marker", ("data-behind-its-marker", "abort-keeps-the-epoch")),
    28: (
        "offsets and output of a transaction appear together",
        ("torn-transaction", "offset-behind-output", "offsets-without-output", "output-without-offsets"),
    ),
    29: ("the pending offsets are those of open transactions", ("pending-offsets", "state-is-replay")),
    30: ("a producer id never serves two ids", ("producer-id-of-two-ids", "producer-id-shared")),
    31: ("an answered marker's offsets are visible", ("answered-before-commit", "offset-lost")),
    32: ("what is to be tried again ends when faults do", ("markers-forgotten", "transactions-end")),
}


OF_JOINT_TRANSACTIONS: dict[int, tuple[str, tuple[str, ...]]] = {  # the numbers of decision 112
    1: ("a batch is decided at most once", ("joint-decided-twice", "joint-gap", "joint-replay", "joint-invented")),
    2: (
        "what is named commits as a whole, and nothing else does",
        ("joint-not-open", "joint-undone", "joint-unasked", "joint-lost", "joint-torn", "joint-leak", "joint-twice"),
    ),
    3: ("a superseded run decides nothing", ("joint-superseded",)),
    4: (
        "a token has one child, and nobody else has it",
        ("joint-token-twice", "joint-shared", "joint-opened", "joint-epoch", "joint-ended-by-others"),
    ),
    5: ("everything ends, and the next batch is decided", ("joint-ends", "joint-goes-on", "joint-open")),
    6: (
        "a fresh replay of what compaction leaves holds the same, and what was told stays",
        ("state-is-replay", "joint-told-early", "joint-forgotten", "joint-begun", "joint-aborted"),
    ),
    7: ("as many ids as attempts that were open at once", ("joint-slot", "joint-slots-above-need")),
    8: ("what a run has given up begins no more", ("joint-given-up",)),
}


@cache
def code_of_findings() -> str:
    return "\n".join(
        path.read_text()
        for folder in ("sim", "checkers", "joint")
        for path in sorted((ROOT / "jepsen" / folder).rglob("*.py"))
    )  # fmt: skip


def test_all_32_are_there() -> None:
    assert list(INVARIANTS) == list(range(1, 33))


@pytest.mark.parametrize("number", OF_JOINT_TRANSACTIONS)
def test_an_invariant_of_joint_transactions_is_told_by_this_name(number: int) -> None:
    _, names = OF_JOINT_TRANSACTIONS[number]
    assert [name for name in names if f'"{name}"' not in code_of_findings()] == []


def test_findings_that_the_page_of_security_names_stand_in_the_code() -> None:
    named = [name for one in all_rules() if one.page == "security" for name in one.where]
    assert len(named) >= 18 and [name for name in named if f'"{name}"' not in code_of_findings()] == []


@pytest.mark.parametrize("number", INVARIANTS)
def test_what_looks_at_it_is_told_by_this_name(number: int) -> None:
    _, names = INVARIANTS[number]
    assert [name for name in names if f'"{name}"' not in code_of_findings()] == []
