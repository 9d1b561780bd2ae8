"""A TCP proxy before the listeners that nodes use among themselves, with a flow for each direction of each link.

Nodes are told the proxy's ports as each other's addresses. Who has opened a connection is looked up in /proc: the node
whose process holds the other end. Every connection holds at most MOST_WAITING pieces of PIECE_BYTES in each direction,
so a link that is held or delayed slows its sender down like a full socket.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jepsen.live.cluster.flows import Counts, Flows, Pair, Rule
from quorumlog.ids import NodeId
from quorumlog.testing.layout import Layout
from quorumlog.testing.ports import HOST, NodePorts, PortPicker
from quorumlog.testing.processes import read_pid_file

PIECE_BYTES = 32 << 10
MOST_WAITING = 32  # pieces of one direction of a connection
START_TIMEOUT_S = 10.0
_INTERNAL, _REPLICATION = "INTERNAL", "REPLICATION"


@dataclass(frozen=True, slots=True)
class Front:
    """node: what lies behind it. port: where the proxy listens. to: the node's own port."""

    node: NodeId
    port: int
    to: int


class ProxyThread(threading.Thread):
    """The loop of all fronts. Its flows are changed from other threads by `set_rules` alone."""

    def __init__(self, fronts: list[Front], opener: Callable[[int, int], NodeId | None]) -> None:
        """opener: the node that has connected from a port to a front's port."""
        super().__init__(name="proxy", daemon=True)
        self._fronts, self._opener = fronts, opener
        self._flows = Flows(random.Random("proxy"))
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._ended = asyncio.Event()
        self._changed = asyncio.Event()
        self.failure: BaseException | None = None

    def start(self) -> None:
        super().start()
        if not self._ready.wait(START_TIMEOUT_S) or self.failure is not None:
            raise OSError(f"the proxy did not start: {self.failure}")

    def stop(self) -> None:
        """May be called twice."""
        if self.is_alive():
            self._loop.call_soon_threadsafe(self._ended.set)
            self.join()

    def set_rules(self, rules: Mapping[Pair, Rule]) -> None:
        """In place of all that were in force."""

        async def change() -> None:
            self._flows.rules = dict(rules)
            self._changed.set()
            self._changed = asyncio.Event()

        asyncio.run_coroutine_threadsafe(change(), self._loop).result(START_TIMEOUT_S)

    def counts(self) -> dict[Pair, Counts]:
        """Copies, of each flow that was used."""

        async def copy() -> dict[Pair, Counts]:
            found = self._flows.counts.items()
            return {pair: Counts(one.passed, one.held, one.delayed, one.dropped) for pair, one in found}

        return asyncio.run_coroutine_threadsafe(copy(), self._loop).result(START_TIMEOUT_S)

    def run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            self.failure = error
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        servers = []
        for front in self._fronts:

            async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, front: Front = front) -> None:
                await self._accept(front, reader, writer)

            servers.append(await asyncio.start_server(accept, HOST, front.port, limit=PIECE_BYTES))
        self._ready.set()
        await self._ended.wait()
        for server in servers:
            server.close()
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.wait(left) if left else None

    async def _accept(self, front: Front, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            source = self._opener(writer.get_extra_info("peername")[1], front.port)
            if source is None:
                return
            back_reader, back_writer = await asyncio.open_connection(HOST, front.to, limit=PIECE_BYTES)
            writers.append(back_writer)
            await self._carry(
                Stream((source, front.node), reader, back_writer), Stream((front.node, source), back_reader, writer)
            )
        except OSError:
            pass  # the node is down, or an end was closed
        finally:
            for one in writers:
                one.transport.abort()

    async def _carry(self, *streams: Stream) -> None:
        """Until one direction ends: then both do, as gRPC and Kafka's protocol close whole connections."""
        tasks = [asyncio.ensure_future(one) for stream in streams for one in self._tasks_of(stream)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def _tasks_of(self, stream: Stream) -> list[Coroutine[Any, Any, None]]:
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(MOST_WAITING)
        return [self._take(stream, waiting), self._give(stream, waiting)]

    async def _take(self, stream: Stream, waiting: asyncio.Queue[tuple[float, bytes]]) -> None:
        with suppress(OSError):
            while piece := await stream.reader.read(PIECE_BYTES):
                await self._pass(stream.pair)
                ends, delay_ms = self._flows.meet(stream.pair)
                if ends:
                    return
                await waiting.put((self._loop.time() + delay_ms / 1_000, piece))
        await waiting.put((0.0, b""))
        await asyncio.Event().wait()  # `_give` ends the connection once everything before has passed

    async def _give(self, stream: Stream, waiting: asyncio.Queue[tuple[float, bytes]]) -> None:
        with suppress(OSError):
            while True:
                due, piece = await waiting.get()
                if not piece:
                    return
                if (wait_s := due - self._loop.time()) > 0:
                    await asyncio.sleep(wait_s)
                stream.writer.write(piece)
                await stream.writer.drain()

    async def _pass(self, pair: Pair) -> None:
        """Returns when the flow is not held."""
        if self._flows.rule(pair).holds:
            self._flows.count(pair).held += 1
        while self._flows.rule(pair).holds:
            await self._changed.wait()


@dataclass(frozen=True, slots=True)
class Stream:
    """One direction of a connection. pair: whose bytes, and for whom."""

    pair: Pair
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


def proxied(layout: Layout, picker: PortPicker) -> ProxyThread:
    """Change the nodes' files so that they reach each other through the proxy, which the caller starts.

    Raises NoFreePorts.
    """
    fronts_of = {node.node_id: ports for node, ports in zip(layout.nodes, picker.pick(len(layout.nodes)), strict=True)}
    voters = ",".join(f"{node_id}@{HOST}:{ports.internal}" for node_id, ports in fronts_of.items())
    for node in layout.nodes:
        ports = fronts_of[node.node_id]
        told = f"{_INTERNAL}://{HOST}:{ports.internal},{_REPLICATION}://{HOST}:{ports.replication}"
        lines = [line for line in node.config.read_text().splitlines() if not line.startswith(_VOTERS)]
        node.config.write_text("\n".join([*lines, f"{_VOTERS}{voters}", f"advertised.listeners={told}"]) + "\n")
    fronts = [front for node in layout.nodes for front in _fronts(node.node_id, fronts_of[node.node_id], node.ports)]

    def opener(from_port: int, to_port: int) -> NodeId | None:
        inodes = [socket_inode(Path(table).read_text(), from_port, to_port) for table in _TABLES]
        inode = next((one for one in inodes if one), "")
        for node in layout.nodes:
            process = read_pid_file(node.pid_file)
            if inode and process is not None and holds_socket(Path(f"/proc/{process.pid}/fd"), inode):
                return node.node_id
        return None

    return ProxyThread(fronts, opener)


_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")  # gRPC's sockets are of both families
_VOTERS = "controller.quorum.voters="


def _fronts(node: NodeId, told: NodePorts, own: NodePorts) -> list[Front]:
    return [Front(node, told.internal, own.internal), Front(node, told.replication, own.replication)]


def socket_inode(table: str, from_port: int, to_port: int) -> str:
    """The inode of the connected socket with these ports, as /proc/net/tcp lists it; empty if it is not there."""
    for line in table.splitlines()[1:]:
        fields = line.split()
        if int(fields[1].rpartition(":")[2], 16) == from_port and int(fields[2].rpartition(":")[2], 16) == to_port:
            return fields[9]
    return ""


def holds_socket(descriptors: Path, inode: str) -> bool:
    """Whether the process with this /proc/PID/fd has the socket open."""
    with suppress(OSError):
        for descriptor in descriptors.iterdir():
            with suppress(OSError):
                if str(descriptor.readlink()) == f"socket:[{inode}]":
                    return True
    return False
