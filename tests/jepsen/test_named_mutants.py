"""Mistakes of replication and storage that broke other systems: each is a mutant here, and something kills it.

Sources: the findings behind KIP-101, KIP-279, KIP-320, KIP-360, KIP-664, KIP-890 and KIP-966, the TLA+ models of
Kafka's replication, Raft's thesis, and what is told of broken fsync. The two about groups of consumers come with the
coordinator: an offset that is visible before its transaction is committed, and a partition that is assigned before its
owner has given it up.
"""

from __future__ import annotations

import re
from functools import cache

from jepsen.mutation.mutant import ROOT, all_mutants
from jepsen.mutation.table import SURVIVED

NAMED: dict[str, tuple[str, ...]] = {
    # metadata quorum
    "acknowledged before fsync": ("02-ack-before-synced", "56-fetch-before-synced", "57-synced-when-written"),
    "a vote ignores how fresh the log is": ("162-shorter-log-elected",),
    "an entry of an older epoch is committed by counting": ("06-commit-by-counting",),
    "no check of the quorum": ("166-no-check-quorum",),
    "an epoch that is not persisted": ("138-earlier-promise-written", "61-quorum-state-name-unsynced"),
    "a leader counts itself twice": ("142-leader-counts-itself-twice",),
    "two changes of the voters at once": ("110-two-voter-sets-open",),
    "a voter without its memory joins under its old id": ("112-disk-that-forgot-votes",),
    "a snapshot keeps a suffix that conflicts with it": ("104-log-kept-before-its-snapshot",),
    # replicas and logs
    "truncated to the high watermark": ("05-truncate-to-high-watermark",),
    "epochs are compared once, not down to a common one": ("325-floor-epoch-untold", "63-epochs-not-compared"),
    "the ISR counts that the controller knows, not the larger one": ("71-shrunk-before-committed",),
    "a follower joins behind the high watermark": ("72-joins-behind-the-mark",),
    "a follower joins before the start of the leader's epoch": ("326-joins-before-the-epoch",),
    "a follower joins by a fetch of its earlier life": ("327-earlier-life-in-the-isr",),
    "acknowledged when appended, not at the high watermark": ("74-acked-by-one-disk",),
    "eligible replicas outlive an unclean stop": ("328-eligible-after-an-unclean-stop",),
    "epochs are not cut with the log": ("329-epochs-outlive-a-cut", "81-empty-epoch-kept", "306-lines-beyond-the-end"),
    "a batch of a later epoch than that of its fetch is appended": ("73-epoch-above-the-fetchs",),
    "a directory is deleted because its topic is not known": ("106-unknown-stray-deleted",),
    "a directory is not synced after a name in it was made or changed": (
        "92-offset-file-name-unsynced", "280-mark-unsynced", "288-live-name-unsynced", "236-sources-removed-unsynced",
    ),
    "compaction drops the newest record of a key": (
        "243-newest-value-dropped", "235-full-map-counts-as-done", "317-successor-unsynced",
    ),
    "a fetch acknowledges whatever its position and epoch are": (
        "76-any-position-acknowledges", "77-old-epoch-acknowledges",
    ),
    "an answer to an older fetch is taken": ("78-older-answer-taken",),
    "what a failed fsync left in the page cache is taken for stored": ("11-recovered-from-memory",),
    # producers and transactions
    "sequences begin anew when the leader changes": ("10-producers-forgotten", "79-cut-producers-remembered"),
    "a repeated batch gets another offset": ("09-repetition-unseen",),
    "no epoch for each transaction": ("212-marker-without-an-epoch-of-its-own",),
    "the index of aborted transactions is not rebuilt": (
        "216-lost-transaction-index-unseen", "219-aborted-of-one-segment",
    ),
}  # fmt: skip


@cache
def killed() -> frozenset[str]:
    """By the table of docs/mutants.md: name, mistake, killer, killed by, runs, seconds."""
    page = (ROOT / "docs" / "mutants.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\| \d.*$", page, re.MULTILINE)
    ]
    return frozenset(row[0] for row in rows if len(row) >= 6 and row[3] != SURVIVED)


def test_every_named_mistake_is_a_mutant() -> None:
    known = {mutant.name for mutant in all_mutants()}
    assert [name for names in NAMED.values() for name in names if name not in known] == []


def test_every_one_of_them_is_killed() -> None:
    assert [name for names in NAMED.values() for name in names if name not in killed()] == []
