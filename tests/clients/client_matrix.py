"""The matrix of clients and features: its cells, permitted skips, and the page with the results.

A cell is a function that does one thing with one client against a running cluster, and raises if it does not work. A
feature without a cell is one that the client does not offer. A client that cannot run on this machine is skipped, for
one of LISTED_SKIPS; any other reason fails the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from secure.security_matrix import SITUATIONS, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kafka-clients.md"

METADATA = "brokers, controller, topics"
CREATE_TOPIC = "create and delete topics"
ADD_PARTITIONS = "add partitions"
DESCRIBE_CONFIGS = "describe settings"
ALTER_CONFIGS = "change single settings"
REPLACE_CONFIGS = "replace all settings (AlterConfigs)"
PRODUCE = "produce, client's defaults"
IDEMPOTENT = "produce, idempotent"
NO_ACKS = "produce, acks=0"
GZIP, SNAPPY, LZ4, ZSTD = (f"produce and consume, {name}" for name in ("gzip", "snappy", "lz4", "zstd"))
WHOLE_RECORD = "keys, headers, timestamps"
LARGE = "a record of 900 kB"
CONSUME = "consume by assignment"
SEEK = "seek"
ENDS = "earliest and latest offset"
BY_TIME = "offset by timestamp"
DELETE_RECORDS = "delete records"
LOG_DIRS = "log directories"
QUORUM = "describe the quorum"
REASSIGN = "reassign partitions: begin, list, cancel"
ELECT = "elect the preferred leader"
GROUP = "consumer group: subscribe, commit, resume"
NEW_GROUP = "consumer group, group.protocol=consumer (KIP-848)"
LIST_GROUPS = "list, describe and delete groups"
TRANSACTION = "transaction: commit, abort, read committed"
TRANSFORM = "consume, transform, produce with offsets in a transaction"
FENCING = "a new producer fences the old one of its id"
FEATURES = (
    METADATA, CREATE_TOPIC, ADD_PARTITIONS, DESCRIBE_CONFIGS, ALTER_CONFIGS, REPLACE_CONFIGS, PRODUCE, IDEMPOTENT,
    NO_ACKS, GZIP, SNAPPY, LZ4, ZSTD, WHOLE_RECORD, LARGE, CONSUME, SEEK, ENDS, BY_TIME, DELETE_RECORDS, LOG_DIRS,
    QUORUM, REASSIGN, ELECT, GROUP, LIST_GROUPS, NEW_GROUP, TRANSACTION, TRANSFORM, FENCING,
)  # fmt: skip

NO_KCAT = "there is no kcat on this machine"
NO_JAVA = "there is no Java of 17 or newer, or no mvn, on this machine"
NO_ARTIFACTS = "Maven could not fetch Kafka here"  # not accepted in CI
NO_GO = "there is no Go on this machine"
NO_MODULES = "Go's module proxy cannot be reached from here"  # not accepted in CI
VERSION_NUMBER = re.compile(r"\d+(\.\d+)+")
LISTED_SKIPS = (NO_KCAT, NO_JAVA, NO_ARTIFACTS, NO_GO, NO_MODULES)


def skip_if(reason: str) -> None:
    """Skip the test that runs, for one of LISTED_SKIPS; "": do not."""
    if reason:
        assert reason in LISTED_SKIPS, f"a skip that is not listed: {reason}"
        pytest.skip(reason)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cell works: a cluster, and its own topic of one partition."""

    servers: str
    topic: str


Cell = Callable[[Place], None]


@dataclass(frozen=True, slots=True)
class Client:
    """missing: why it cannot run here (one of LISTED_SKIPS), or "". version: called only if it can run. marks: of the
    tests of its cells."""

    name: str
    version: Callable[[], str]
    missing: Callable[[], str]
    cells: Mapping[str, Cell]
    marks: tuple[pytest.MarkDecorator, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """One of Kafka's command-line tools. does: what the test does with it."""

    name: str
    does: str
    cell: Cell


Ran = dict[tuple[str, str], str]  # (client or tool, feature) -> version; only cells that passed


def page(clients: Mapping[str, Client], tools: Mapping[str, Tool], ran: Ran) -> str:
    """The whole text of docs/kafka-clients.md."""
    lines = [
        "# Kafka clients",
        "",
        "`./dev test clients` writes this page: it runs every cell against three nodes with their default settings.",
        "A cell holds the version of the client that passed. `-`: the client does not have the feature. `not run`: the",
        "client was not installed where the tests ran.",
        "",
        f"| | {' | '.join(clients)} |",
        f"|---|{'---|' * len(clients)}",
    ]
    for feature in FEATURES:
        results = [_result(client, feature, ran) for client in clients.values()]
        lines.append(f"| {feature} | {' | '.join(results)} |")
    lines += ["", "Kafka's own tools, with the settings they come with:", "", "| tool | does | ran |", "|---|---|---|"]
    lines += [f"| {tool.name} | {tool.does} | {ran.get((tool.name, ''), 'not run')} |" for tool in tools.values()]
    lines += [
        "",
        f"With TLS and logins: {len(SITUATIONS)} situations ({', '.join(SITUATIONS)}).",
        "How many of them each client, of this version or newer, is played in: each pair of values in",
        "`./dev test clients`, all cells (and grpcurl's) in `./dev nightly`. Why some cannot be:",
        "`tests/clients/secure/security_matrix.py`.",
        "",
        *table(),
        "",
        "Two answers differ on purpose: `min.insync.replicas`, `unclean.leader.election.enable`,",
        "`unclean.recovery.strategy` and `log.durability` are refused for one broker (INVALID_CONFIG), since",
        "its leaders and the controller would decide by two values; and DeleteRecords answers REQUEST_TIMED_OUT while",
        "a member of the ISR or ELR is away that has not deleted the records.",
        "",
        "Not supported yet: share groups, streams groups, delegation tokens (answered as Kafka does with tokens off:",
        "`tests/wire/test_tokens_are_off.py`). `./dev fuzz` shows that no other bytes that a client may send harm a",
        "node.",
        "",
    ]
    return "\n".join(lines)


def _result(client: Client, feature: str, ran: Ran) -> str:
    if feature not in client.cells:
        return "-"
    return ran.get((client.name, feature), "not run")


def stale(text: str, fresh: str) -> list[str]:
    """Lines that differ. A cell that this run could not fill agrees with any result on the page.

    A different version of a client is not a difference, so that a new release does not break the build.
    """
    old, new = (VERSION_NUMBER.sub("N", found).splitlines() for found in (text, fresh))
    if len(old) != len(new):
        return [f"{len(old)} lines, should be {len(new)}"]
    return [f"{was!r} should be {now!r}" for was, now in zip(old, new, strict=True) if not _agree(was, now)]


def _agree(was: str, now: str) -> bool:
    old, new = was.split(" | "), now.split(" | ")
    if len(old) != len(new):
        return False
    return all(a == b or "not run" in b for a, b in zip(old, new, strict=True))
