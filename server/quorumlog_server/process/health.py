"""A node's health: alive and ready, over HTTP and as grpc.health.v1. Its metrics are in `quorumlog_server.metrics`."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quorumlog.ids import NO_EPOCH, NO_NODE
from quorumlog.messages.events import Event
from quorumlog_server.process.http_page import Page, Route
from quorumlog_server.process.node import Node
from quorumlog_server.process.offline import offline_directories, offline_replicas
from quorumlog_server.process.watchdog import LoopWatchdog

if TYPE_CHECKING:
    from quorumlog_broker.node import Broker

JSON_TYPE = "application/json"
BROKER_SERVICES = ("quorumlog.Broker", "quorumlog.v1.Broker")
CONTROLLER_SERVICES = ("quorumlog.Controller", "quorumlog.v1.Controller", "quorumlog.v1.Quorum")
MAX_BLOCKED = 20
EVENTS = 1_000
NO_LEADER = "the leader of the quorum is unknown"
METRICS = "quorumlog_server.metrics.scrapes"


def admin_routes(node: Node, watchdog: LoopWatchdog) -> Mapping[str, Route]:
    metrics = LateMetrics(node, watchdog)
    return {
        "/healthz": lambda: Page(503, f"{node.fatal}\n".encode()) if node.fatal else Page(200, b"alive\n"),
        "/readyz": lambda: readiness(node),
        "/node": lambda: Page(200, json.dumps(who(node)).encode(), JSON_TYPE),
        "/metrics": metrics.page,
        "/metrics/now": metrics.page_now,
        "/debug/stacks": lambda: Page(200, stacks().encode()),
        "/debug/events": lambda: Page(200, events(node), JSON_TYPE),
    }


class LateMetrics:
    """Imports what makes them late and in a thread: that must delay neither the start nor the event loop."""

    def __init__(self, node: Node, watchdog: LoopWatchdog) -> None:
        self._node, self._watchdog = node, watchdog
        self._scrapes: Any = None

    async def page(self) -> Page:
        """At most a second old."""
        page: Page = await (await self._loaded()).page()
        return page

    async def page_now(self) -> Page:
        """Begun after this call."""
        page: Page = await (await self._loaded()).page_now()
        return page

    async def _loaded(self) -> Any:
        module = await asyncio.to_thread(importlib.import_module, METRICS)
        if self._scrapes is None:
            self._scrapes = module.Scrapes(self._node, self._watchdog)
        return self._scrapes


def stacks() -> str:
    """Where each thread and each task of the loop is; no values of variables, which may be secrets."""
    lines = []
    names = {one.ident: one.name for one in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        lines.append(f"thread {names.get(ident, ident)}")
        lines += traceback.format_stack(frame)
    for task in sorted(asyncio.all_tasks(), key=lambda one: one.get_name()):
        where = task.get_stack(limit=1)
        place = (
            f"{where[0].f_code.co_filename}:{where[0].f_lineno} in {where[0].f_code.co_name}" if where else "not begun"
        )
        lines.append(f"task {task.get_name()} at {place}")
    return "\n".join(one.rstrip("\n") for one in lines) + "\n"


def events(node: Node) -> bytes:
    """The newest thousand, and since when there is no gap; the call DescribeEvents has filters."""
    found = node.events.find(limit=EVENTS)
    told = [{name: getattr(one, name) for name in Event.__dataclass_fields__} for one in found.events]
    about = {"node_id": node.config.node_id, "lost": found.lost, "complete_since_ms": found.complete_since_ms}
    return json.dumps({**about, "events": told}).encode()


def readiness(node: Node) -> Page:
    """A broker that serves is ready, also without a quorum: no load balancer shall take it away. It says so."""
    if not node.ready:
        return Page(503, f"{why_not_ready(node)}\n".encode())
    lost = node.loader.active_controller is None
    return Page(200, f"ready, but {NO_LEADER}: metadata cannot change\n".encode() if lost else b"ready\n")


def who(node: Node) -> dict[str, Any]:
    """This node and process, and the quorum's leader as known here; -1: none is known.

    recovery: what opening the logs found, a text for each log that was not whole.
    offline: a text for each directory that is offline, then for each replica that is offline alone.
    problems: what else the operator has to do something about now, a text for each.
    opening: a text for each directory with logs that are not open yet.
    index_checks: a text for each directory, what the last check in the background has looked at.
    cut_links: addresses of other nodes that a test has cut; None: they cannot be cut.
    """
    cut = node.edges.cut_links
    leader = node.loader.active_controller
    return {
        "node_id": node.config.node_id,
        "pid": os.getpid(),
        "leader_id": NO_NODE if leader is None else leader.node_id,
        "leader_epoch": NO_EPOCH if leader is None else leader.epoch,
        "recovery": recovery_findings(node),
        "offline": [*offline_directories(node), *offline_replicas(node)],
        "problems": problems(node),
        "opening": opening(node),
        "index_checks": index_checks(node),
        "cut_links": None if cut is None else [str(address) for address in sorted(cut.addresses)],
    }


def opening(node: Node) -> list[str]:
    """How far the opening of the logs has come, a text for each directory that has logs to open.

    Before that, a text for each directory that has not answered yet.
    """
    silent = [f"{path}: has not answered for {ms} ms" for path, ms in node.unanswered_directories.items()]
    return (
        silent if node.broker is None else [str(one) for one in node.broker.data_plane.opening_progress.by_directory()]
    )


def index_checks(node: Node) -> list[str]:
    """A text for each directory that has been checked once."""
    reports = [] if node.broker is None else list(node.broker.data_plane.index_checks.values())
    return [str(report) for report in reports if report.last is not None]


def problems(node: Node) -> list[str]:
    """Log directories that are short of space, damaged notes of theirs, damaged batches, logs that cannot expire."""
    if node.broker is None:
        return []
    plane = node.broker.data_plane
    queues = list(plane.store.queues.values())
    short = [queue.space.describe(queue.directory.path) for queue in queues if queue.space.is_short]
    notes = [text for queue in queues for text in queue.directory.partitions.findings]
    damage = [text for report in plane.index_checks.values() for text in report.problems()]
    return [*short, *notes, *damage, *blocked_retention(node.broker)]


def blocked_retention(broker: Broker) -> list[str]:
    """A text for each log that keeps everything because of its records' times, at most MAX_BLOCKED of them."""
    plane = broker.data_plane
    names = {key: replica.name for key in plane.blocked_retention if (replica := plane.registry.replicas.get(key))}
    texts = [plane.blocked_retention[key].describe(name) for key, name in list(names.items())[:MAX_BLOCKED]]
    left = len(names) - len(texts)
    return [*texts, f"{left} more logs keep all their records in the same way"] if left else texts


def recovery_findings(node: Node) -> list[str]:
    """The metadata log first, then partitions by name."""
    found = [] if node.broker is None else [str(finding) for finding in node.broker.data_plane.recovery_findings.all]
    opened = None if node.driver is None else node.driver.opened
    return [opened.finding, *found] if opened is not None and opened.finding else found


def is_serving(node: Node, service: str) -> bool | None:
    """For grpc.health.v1: the same state as /readyz, also by role. None: the node has no such service."""
    if service == "":
        return node.ready
    if service in BROKER_SERVICES and node.config.is_broker:
        return node.broker is not None and node.broker.serving
    if service in CONTROLLER_SERVICES and node.config.is_controller:
        return node.loader.active_controller is not None
    return None


def why_not_stopped(node: Node) -> str:
    """What a stop is at; each progress of it changes the text."""
    broker = node.broker
    if broker is None or node.stage != "the broker":
        return node.stage
    queues = [one for one in list(broker.data_plane.store.queues.values()) if one.logs_to_close]
    if not queues:
        return f"{broker.data_plane.registry.leader_count()} leaderships to be handed over"
    return ", ".join(
        f"{one.logs_to_close - len(one.closed_logs)} of {one.logs_to_close} logs of {one.directory.path} to be closed"
        for one in queues
    )


def why_not_ready(node: Node) -> str:
    silent = [f"log directory {path} has not answered for {ms} ms" for path, ms in node.unanswered_directories.items()]
    if silent:
        return f"starting: {'; '.join(silent)}"
    if node.loader.active_controller is None:
        return NO_LEADER
    if node.broker is None:
        return "starting"
    left = node.broker.data_plane.logs_to_open.left
    recovering = f", {left} logs to open" if left else ""
    fenced = ", fenced" if node.broker.lifecycle.fenced else ""
    return f"broker is {node.broker.lifecycle.state.value}{recovering}{fenced}"
