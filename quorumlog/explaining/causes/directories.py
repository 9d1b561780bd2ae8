"""Causes about log directories and disks."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from quorumlog.explaining.causes.away import read
from quorumlog.explaining.causes.table import DISK, Cause
from quorumlog.explaining.facts import DirectoryFact, Facts
from quorumlog.explaining.finding import Finding, Severity, evidence
from quorumlog.explaining.thresholds import Thresholds
from quorumlog.messages.events import Event


def _call(one: DirectoryFact) -> str:
    return f"DescribeLogDirs of broker {one.node_id}"


def _online(one: DirectoryFact) -> str:
    return f"quorumlog log-dirs online --node {one.node_id} {quote(one.path)}"


def _offline(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for one in facts.directories:
        if one.error:
            last = facts.last_event(f"directory/{one.path}", "directory.offline")
            yield Finding(
                cause="directory.offline",
                subject=f"directory/{one.path}",
                severity=Severity.CRITICAL,
                state=f"directory {one.path} of broker {one.node_id} is OFFLINE: its replicas are not served",
                why=evidence(last, read(facts, f"{one.path}: {one.error}", _call(one))),
                next="nothing: it stays offline until an operator brings it back, or the broker is restarted",
                do=_online(one),
                also=(f"broker/{one.node_id}",),
            )


def _full(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    for one in facts.directories:
        if one.is_offline_for_want_of_room:
            yield Finding(
                cause="directory.full",
                subject=f"directory/{one.path}",
                severity=Severity.CRITICAL,
                state=f"directory {one.path} of broker {one.node_id} is FULL: a write found no room, so it is OFFLINE",
                why=evidence(
                    facts.last_event(f"directory/{one.path}", "directory.offline"),
                    read(facts, f"{one.path}: {one.error}, and no byte is free", _call(one)),
                ),
                next="nothing: with room on its file system, it still waits for an operator to bring it back",
                do=_online(one),
                also=(f"broker/{one.node_id}",),
            )
        elif 0 <= one.usable < one.reserve:
            text = f"{one.path}: {one.usable} bytes are free, less than the reserve of {one.reserve}"
            yield Finding(
                cause="directory.full",
                subject=f"directory/{one.path}",
                severity=Severity.CRITICAL,
                state=f"directory {one.path} of broker {one.node_id} is FULL: producers to its leaders are refused",
                why=evidence(read(facts, text, _call(one))),
                next="writes are taken again once a quarter more than the reserve is free",
                do=f"quorumlog broker describe {one.node_id}",
                also=(f"broker/{one.node_id}",),
            )


def _nearly_full(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for one in facts.directories:
        if one.error or one.total <= 0 or one.usable < 0 or (one.reserve >= 0 and one.usable < one.reserve):
            continue
        free = 100 * one.usable / one.total
        if free < limits.free_percent:
            text = f"{one.path}: {one.usable} of {one.total} bytes are free"
            yield Finding(
                cause="directory.nearly-full",
                subject=f"directory/{one.path}",
                severity=Severity.WARNING,
                state=f"directory {one.path} of broker {one.node_id} is NEARLY FULL: {free:.1f} % are free",
                why=evidence(read(facts, text, _call(one))),
                next="below its reserve producers are refused; deletes and retention go on",
                do="quorumlog partition plan balance --by bytes",
                also=(f"broker/{one.node_id}",),
            )


def _slow(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    recent = facts.events_of("", "disk.slow", since_ms=facts.at_ms - limits.recent_ms)
    for path in dict.fromkeys((one.node_id, one.subject) for one in recent):
        own = [one for one in recent if (one.node_id, one.subject) == path]
        yield Finding(
            cause="disk.slow",
            subject=path[1],
            severity=Severity.WARNING,
            state=f"{path[1]} of broker {path[0]} is SLOW: calls to its disk do not return in time",
            why=evidence(*own[-3:]),
            next="above log.dir.stall.ms it is taken offline, and others lead what it leads",
            do=f"quorumlog broker describe {path[0]}",
            also=(f"broker/{path[0]}",),
        )


def _damaged(facts: Facts, _limits: Thresholds) -> Iterator[Finding]:
    damaged: dict[str, list[Event]] = {}
    for one in facts.events_of("", "directory.damaged", "directory.sound"):
        if one.kind == "directory.damaged":
            damaged.setdefault(one.subject, []).append(one)
        else:
            damaged.pop(one.subject, None)
    for subject, found in damaged.items():
        node = found[-1].node_id
        yield Finding(
            cause="directory.damaged",
            subject=subject,
            severity=Severity.CRITICAL,
            state=f"{subject.partition('/')[2]} of broker {node} has a DAMAGED batch: nobody can read it there",
            why=evidence(*found[-3:]),
            next="nothing by itself: each check in the background finds it again, until the replica is copied anew",
            do="stop the node, check the disk, move the partition's directory out of log.dirs, and start the node: it "
            "copies the partition from its leader; if it leads it, move the leadership first",
            also=(f"broker/{node}",),
        )


DIRECTORIES = (
    Cause("directory.offline", DISK, "a log directory failed, or hung and was given up", _offline),
    Cause("directory.full", DISK, "less is free than the reserve, or nothing, so writes are rejected", _full),
    Cause("directory.nearly-full", DISK, "little space is left", _nearly_full),
    Cause("directory.damaged", DISK, "the check in the background found a damaged batch", _damaged),
    Cause("disk.slow", DISK, "a write or sync took long a short while ago", _slow),
)
