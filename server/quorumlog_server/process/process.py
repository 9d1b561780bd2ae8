"""Runs one node in the foreground: `python -P -m quorumlog_server -c FILE`.

Standard output carries two lines for the parent process, each a word and a JSON object: `LISTENING` with the actual
addresses, then `READY` once the node serves (the same as /readyz). Everything else goes to the log on stderr.
SIGTERM or SIGINT hands over leaderships and stops the node. A second signal, or a stop that takes too long, ends the
process at once; no acknowledged record is lost by that.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from selectors import BaseSelector

from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, AddressInUse
from quorumlog.settings.security import HTTP_LISTENER
from quorumlog.wire.protocol.apis import load_newest
from quorumlog_quorum.raft.quorum_state import CorruptQuorumState
from quorumlog_server.config.config import NodeConfig, read_config
from quorumlog_server.config.properties import ConfigError
from quorumlog_server.directories.directories import DirectoryProblem
from quorumlog_server.edge.edges import Edges
from quorumlog_server.edge.fail_stop import fail_stop, stop_on_loop_errors
from quorumlog_server.edge.real_edges import real_edges
from quorumlog_server.process.allocator import keep_freed_memory
from quorumlog_server.process.freezing import Freezer
from quorumlog_server.process.hardening import harden, shown_to_others
from quorumlog_server.process.health import admin_routes, is_serving
from quorumlog_server.process.http_access import Door, OpenDoor
from quorumlog_server.process.http_admin import HttpAdmin
from quorumlog_server.process.lean_start import loaded, started
from quorumlog_server.process.leaving import SIGNALS, deadline, end_at_once, leave_at_the_next_signal, stop_timeout_s
from quorumlog_server.process.logs import configure_logs
from quorumlog_server.process.node import Node, build_node
from quorumlog_server.process.watchdog import LoopWatchdog

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_DATA, EXIT_PRECONDITION = 0, 1, 2, 4, 6
READY_POLL_S = 0.02
_log = logging.getLogger("quorumlog.node")


def main(
    arguments: Sequence[str] | None = None,
    build: Callable[[NodeConfig, Edges], Node] = build_node,
    new_loop: Callable[[BaseSelector], asyncio.AbstractEventLoop] = asyncio.SelectorEventLoop,
) -> int:
    """The process's exit code. build: makes the node, not started yet. new_loop: makes its event loop."""
    if not __debug__:
        print(
            "quorumlog does not run under -O: its assertions protect the data; start Python without it", file=sys.stderr
        )
        return EXIT_USAGE
    options = _options(arguments)
    try:
        config = read_config(options.config, options.set, os.environ)
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_USAGE
    keep_freed_memory()
    load_newest()
    configure_logs(config.process.log_format, config.process.log_level, config.node_id)
    for warning in (*config.warnings, *harden(config)):
        _log.warning(warning)
    loaded()
    watchdog = LoopWatchdog(_warn_of_stall)
    with asyncio.Runner(loop_factory=lambda: new_loop(watchdog.selector)) as runner:
        return runner.run(_run(config, build, watchdog))


def _warn_of_stall(stall_ms: int) -> None:
    _log.warning("the event loop was held up for %d ms", stall_ms)


def _note_stall(node: Node, stall_ms: int) -> None:
    _warn_of_stall(stall_ms)
    text = f"the event loop was held up for {stall_ms} ms"
    node.events.note("loop.stall", f"node/{node.config.node_id}", text)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -P -m quorumlog_server", description="Run one quorumlog node.")
    parser.add_argument("-c", "--config", required=True, metavar="FILE", help="server.properties, or the same as .toml")
    parser.add_argument("-X", dest="set", action="append", default=[], metavar="KEY=VALUE", help="override one key")
    return parser.parse_args(arguments)


async def _run(config: NodeConfig, build: Callable[[NodeConfig, Edges], Node], watchdog: LoopWatchdog) -> int:
    loop = asyncio.get_running_loop()
    stop_on_loop_errors(loop, fail_stop)
    try:
        edges = real_edges(config, health=lambda service: is_serving(node, service))
    except ConfigError as error:
        _log.error("cannot start: %s", error)
        return EXIT_USAGE
    node = build(config, edges)
    watchdog.on_stall = partial(_note_stall, node)
    stop = loop.create_future()
    _handle_signals(stop)
    if edges.listener_keys.by_listener:
        loop.add_signal_handler(signal.SIGHUP, edges.listener_keys.look_now)
    nursery = Nursery(lambda name, error: _log.error("%s failed", name, exc_info=error))
    freezer = Freezer(lambda: node.loader.partition_changes, made=lambda: node.made_by_the_start)
    node.loader.on_progress(freezer.wake)
    nursery.start(freezer.run(), "freezer")
    admin = HttpAdmin(admin_routes(node, watchdog), _door(config, edges), edges.listener_keys.context_of(HTTP_LISTENER))
    try:
        await _start(config, node, admin)
    except (DirectoryProblem, AddressInUse, OSError) as error:
        _log.error("cannot start: %s", error)
        if node.hangs:
            end_at_once(EXIT_PRECONDITION)
        return EXIT_PRECONDITION
    except CorruptQuorumState as error:
        _log.error("cannot start: %s", error)
        return EXIT_DATA
    except ConfigError as error:  # found only once it is known which cluster and node this is
        _log.error("cannot start: %s", error)
        return EXIT_USAGE
    except Exception:
        _log.exception("cannot start")
        return EXIT_FAILED
    for warning in shown_to_others(config):  # now that the directory is known not to hang
        _log.warning(warning)
    started(is_large=freezer.has_frozen)
    nursery.start(watchdog.run(), "loop watchdog")
    edges.listener_keys.keep_fresh(nursery)
    edges.token_keys.keep_fresh(nursery)
    nursery.start(_tell_when_ready(node), "ready line")
    reason = await _until_stopped(stop, node)
    _log.info("stopping: %s", reason)
    leave_at_the_next_signal()
    with deadline(stop_timeout_s(config.lifecycle.controlled_shutdown_timeout_ms)):
        await node.stop(controlled=config.lifecycle.controlled_shutdown_enable)
        await admin.close()
        await nursery.close()
    _log.info("stopped")
    code = EXIT_PRECONDITION if node.fatal is not None else EXIT_OK
    if node.hangs:
        end_at_once(code)
    return code


def _door(config: NodeConfig, edges: Edges) -> Door:
    """The node has told the edges who may describe the cluster."""
    if not config.asks_at_http:
        return OpenDoor()
    from quorumlog_server.process.http_door import http_door

    return http_door(config, edges.listener_keys, edges.users, edges.logins.may_describe, edges.clock.wall_ms)


async def _until_stopped(stop: asyncio.Future[str], node: Node) -> str:
    """The reason to stop: a signal's name, or the node's fatal error."""

    def stop_once(reason: str) -> None:
        if not stop.done():
            stop.set_result(reason)

    node.on_fatal(stop_once)
    return await stop


async def _start(config: NodeConfig, node: Node, admin: HttpAdmin) -> None:
    """Opens the admin port first, so that /readyz reports the recovery of logs. Raises OSError and `Node.start`'s
    errors."""
    metrics = await _listen_for_admin(config, admin)
    try:
        await node.start()
    except BaseException:
        await admin.close()
        raise
    listeners = {name: str(address) for name, address in (*node.addresses.items(), *metrics.items())}
    _tell("LISTENING", {"node_id": config.node_id, "pid": os.getpid(), "listeners": listeners})


async def _listen_for_admin(config: NodeConfig, admin: HttpAdmin) -> dict[str, Address]:
    """The admin address by name; empty if metrics.port is not set."""
    if config.process.metrics_port is None:
        return {}
    wanted = Address(config.process.metrics_host, config.process.metrics_port)
    try:
        return {"metrics": await admin.start(wanted.host, wanted.port)}
    except OSError as error:
        in_use = error.errno == errno.EADDRINUSE
        why = "the port is in use; stop its user, or set another metrics.port" if in_use else error.strerror
        raise OSError(error.errno, f"cannot listen at {wanted} for metrics: {why}") from error


async def _tell_when_ready(node: Node) -> None:
    while not node.ready:  # noqa: ASYNC110 - readiness depends on several parts, which have no common event
        await asyncio.sleep(READY_POLL_S)
    _tell("READY", {"node_id": node.config.node_id})


def _tell(word: str, what: object) -> None:
    print(word, json.dumps(what), flush=True)


def _handle_signals(stop: asyncio.Future[str]) -> None:
    """The first signal requests a stop, also during the start; `leaving` handles the second."""
    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, _on_signal, number, stop)


def _on_signal(number: signal.Signals, stop: asyncio.Future[str]) -> None:
    if not stop.done():
        stop.set_result(number.name)
        leave_at_the_next_signal()
