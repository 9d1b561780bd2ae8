"""One look at a cluster as text for people and scripts, or as a document. Pure."""

from __future__ import annotations

from typing import Any

from quorumlog.ids import format_uuid
from quorumlog.watch.sample import UNKNOWN, Group, Sample, Topic
from quorumlog.watch.words import clock, short_duration
from quorumlog_cli.top.happened import Happened
from quorumlog_cli.top.table import Table, fit, line, titles
from quorumlog_cli.top.views import HOUR_MS, Choice, Watched, all_tables, problems
from quorumlog_cli.top.words import cut

SILENT_MS = 5_000  # after the time of the last answer: longer than a look that is answered takes


def status(watched: Watched, now_ms: int, name: str) -> tuple[str, str]:
    """(what the first line says, its level). It tells how old an answer is that is not new, and why."""
    sample = watched.newest
    if sample is None:
        return f"{name}  {watched.trouble or 'asking …'}", "bad" if watched.trouble else ""
    found = problems(sample)
    who = f"{len(sample.brokers)} brokers  cluster {sample.cluster_id or name}"
    unread = f"  unread: {', '.join(part.value for part in sample.missing)}" if sample.missing else ""
    text = f"{' · '.join(found) if found else 'healthy'}  {clock(sample.wall_ms)}  {who}{unread}"
    age_ms = max(0, now_ms - sample.wall_ms)
    if watched.trouble or age_ms > watched.every_ms + SILENT_MS:
        return f"NO ANSWER for {short_duration(age_ms)}, asking on  {watched.trouble}  {text}", "bad"
    return text, "warn" if found or sample.missing else "good"


def text_frame(watched: Watched, choice: Choice, width: int, now_ms: int, name: str) -> str:
    """All tables below each other, whole, in lines of at most `width`."""
    lines = [cut(status(watched, now_ms, name)[0], width)]
    for table in all_tables(watched, choice):
        lines += ["", *_lines(table, width)]
    return "\n".join(text.rstrip() for text in lines) + "\n"


def _lines(table: Table, width: int) -> list[str]:
    head = cut(f"── {table.heading} ", width).ljust(width, "─")
    if not table.rows:
        return [head, cut(table.note, width)]
    fitted = fit(table.columns, width)
    return [head, titles(table.columns, fitted), *(line(table.columns, row.cells, fitted) for row in table.rows)]


def document(watched: Watched, choice: Choice) -> dict[str, Any]:
    """The same for programs, with whole numbers in their units. What is not known is null."""
    sample = watched.newest
    if sample is None:
        return {"error": watched.trouble or "no answer yet"}
    quorum = sample.quorum
    return {
        "at_ms": sample.wall_ms,
        "cluster_id": sample.cluster_id or None,
        "problems": problems(sample),
        "not_read": {part.value: why for part, why in sample.missing.items()},
        "quorum": None
        if quorum is None
        else {
            "leader": quorum.leader_id if quorum.leader_id >= 0 else None,
            "epoch": quorum.epoch,
            "high_watermark": quorum.high_watermark,
            "members": [
                {
                    "node_id": one.node_id,
                    "voter": one in quorum.voters,
                    "end_offset": _known(one.end),
                    "lag": _known(quorum.lag_of(one)),
                    "since_fetch_ms": _known(one.since_fetch_ms),
                }
                for one in (*quorum.voters, *quorum.observers)
            ],
        },
        "brokers": _brokers(sample),
        "topics": [_topic(one, watched) for one in sample.topics.values() if choice.takes(one.name)],
        "groups": [_group(one, watched) for one in sample.groups.values() if choice.takes(one.group_id)],
        "events": [_event(one) for one in watched.events.newest_first(max(0, watched.asked_ms - HOUR_MS))],
    }


def _known(number: int) -> int | None:
    return None if number == UNKNOWN else number


def _brokers(sample: Sample) -> list[dict[str, Any]]:
    return [
        {
            "node_id": one.node_id,
            "state": one.state.value,
            "address": f"{one.host}:{one.port}",
            "rack": one.rack or None,
            "directories": [
                {
                    "path": each.path,
                    "replicas": each.replicas,
                    "size_bytes": each.size_bytes,
                    "total_bytes": _known(each.total_bytes),
                    "usable_bytes": _known(each.usable_bytes),
                    "error": each.error or None,
                }
                for each in one.directories
            ],
        }
        for one in sample.brokers
    ]


def _topic(one: Topic, watched: Watched) -> dict[str, Any]:
    rate = watched.rates.get(one.name)
    return {
        "topic": one.name,
        "topic_id": format_uuid(one.topic_id) if len(one.topic_id) == 16 else None,
        "partitions": len(one.partitions),
        "offline": one.offline,
        "under_replicated": one.under_replicated,
        "records_per_s": None if rate is None or rate.records is None else round(rate.records, 3),
        "bytes_per_s": None if rate is None or rate.bytes is None else round(rate.bytes, 3),
        "size_bytes": _known(one.size_bytes),
    }


def _group(one: Group, watched: Watched) -> dict[str, Any]:
    trend = watched.past.lag_trend(one.group_id)
    return {
        "group": one.group_id,
        "state": one.state,
        "members": len(one.members),
        "lag": None if one.unread else one.lag,
        "counted_in": None if one.unread else "records" if one.counts_records else "offsets",
        "is_estimate": one.is_estimate,
        "distance": None if one.unread else one.distance,
        "behind_ms": None if one.unread else watched.past.behind_ms(one),
        "growth_per_s": None if trend is None else round(trend, 3),
        "not_read": one.unread or None,
    }


def _event(one: Happened) -> dict[str, Any]:
    return {
        "at_ms": one.at_ms,
        "kind": one.kind,
        "subject": one.subject,
        "text": one.text,
        "node_id": one.node_id if one.node_id >= 0 else None,
        "offset": one.offset if one.offset >= 0 else None,
    }
