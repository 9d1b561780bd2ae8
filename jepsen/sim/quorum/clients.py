"""Clients of one quorum: they change topics and settings, and read them from brokers.

An operation ends with an answer, or its outcome is not known; it is never repeated after that, because a repetition
could find its own work. A topic's name is given up after some operations, so that no history grows long.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from jepsen.linear.models import CREATE, DELETE, DELETE_ID, EXISTS, FIND, READ, SET
from jepsen.linear.sequential import Read
from jepsen.sim.cluster import CLIENT_HOST
from jepsen.sim.network.transport import SimTransport
from jepsen.sim.quorum.asking import (
    AGAIN,
    BROKER_RESOURCE,
    CALL_MS,
    REFUSED,
    SETTINGS,
    answer_of,
    code_of,
    level_request,
    setting_request,
    topic_request,
)
from jepsen.sim.quorum.cluster import QuorumCluster
from jepsen.sim.quorum.committed_log import ABSENT_VERSION
from jepsen.sim.quorum.history import QuorumHistory
from jepsen.sim.quorum.layout import client_address, internal_address
from jepsen.sim.quorum.plan import QuorumPlan
from jepsen.sim.quorum.voter_changes import VoterChanges
from jepsen.sim.settings import CLUSTER_ID, SECRET
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.errors import ErrorCode
from quorumlog.messages.cluster import (
    ConfigResource,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    MetadataRequest,
    TopicQuery,
)
from quorumlog.messages.quorum import DescribeQuorumRequest
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Connection, Identity, NotDelivered, RpcError
from quorumlog_quorum.metadata.features import INCARNATION_LEVEL, LATEST_LEVEL

_CLIENT_ID = 900  # a node id that no node has
_NAMES = 2  # names in use at a time
_OPERATIONS_OF_A_NAME = 30
_LONGEST_PAUSE_S = 3.0  # between two operations of a client: it must end soon once it is told to
_LIMIT_MS = 3_000  # until a change that nobody takes is given up
_PAUSE_S = (0.05, 0.2)  # before another controller is asked
_THROUGH_BROKER, _READS, _CONFIRMED = 0.4, 0.3, 0.1  # shares
_LEVELS, _VOTERS = 0.05, 0.06
_ASTRAY = 0.15  # of the calls ask any controller first: it may have led until a moment ago
_SHOWN_MS = 2_000  # until a broker shows what the quorum had committed
_TOPIC_KINDS = (CREATE, CREATE, CREATE, DELETE, DELETE, DELETE_ID, SET, SET, FIND)


class QuorumClients:
    """history: what they asked and were told."""

    def __init__(self, cluster: QuorumCluster, plan: QuorumPlan) -> None:
        self._cluster, self._plan = cluster, plan
        self._scheduler = cluster.scheduler
        self.history = QuorumHistory(lambda: self._scheduler.now_ns)
        self.loop = SimLoop(self._scheduler, CLIENT_HOST, on_error=self._on_error)
        cluster.clients[CLIENT_HOST] = self.loop
        identity = Identity(
            cluster_id=CLUSTER_ID, node_id=_CLIENT_ID, incarnation_id=b"client".ljust(16), secret=SECRET.encode()
        )
        self._transport = SimTransport(cluster.network, CLIENT_HOST, self.loop, identity, on_crash=self._crashed)
        self._connections: dict[Address, Connection] = {}
        self._nursery = Nursery(self._crashed)
        self._stopping = False
        self._names = [f"t{number}" for number in range(_NAMES)]
        self._next_name = _NAMES
        self._ids: dict[str, str] = {}  # the last id that was told, by name
        self._voters = VoterChanges(cluster, self._scheduler.rng("voters"), self._call_any)
        self._believed = 0  # the controller that is asked first: an index of the layout's

    def start(self) -> None:
        self.loop.create_task(self._start())

    def stop(self) -> None:
        """They end their last operations."""
        self._stopping = True

    @property
    def idle(self) -> bool:
        return len(self._nursery) == 0

    async def one_change(self) -> None:
        """A setting is changed. Raises AssertionError unless that is answered."""
        rng = self._scheduler.rng("probe")
        before = self.history.changed
        await self._change_setting("probe", rng, f"{self._scheduler.now_ns}")
        assert self.history.changed > before, "the change was not carried out"

    async def _start(self) -> None:
        for number in range(self._plan.clients):
            self._nursery.start(self._work(f"p{number}"), f"client {number}")

    async def _work(self, name: str) -> None:
        rng = self._scheduler.rng(f"client/{name}")
        pause_s = self._plan.clients / self._plan.operations_per_s
        serving = self._cluster.layout.serving
        while not self._stopping and self.history.begun < self._plan.operations:
            await asyncio.sleep(min(rng.expovariate(1 / pause_s), _LONGEST_PAUSE_S))
            self.history.begun += 1
            if self._plan.layout.changes_voters and rng.random() < _VOTERS:
                await self._voters.change()
            elif self._plan.layout.begins_older and rng.random() < _LEVELS:
                await self._change_level(rng)
            elif serving and rng.random() < _READS:
                await self._read(name, rng, rng.choice(serving))
            elif rng.random() < _CONFIRMED:
                await self._read_confirmed(name, rng)
            elif serving and rng.random() < 0.6:
                await self._change_topic(name, rng)
            else:
                await self._change_setting(name, rng, "" if rng.random() < 0.2 else str(self.history.begun))

    # --- changes ---

    async def _change_topic(self, process: str, rng: random.Random) -> None:
        place = rng.randrange(_NAMES)
        name, kind = self._names[place], rng.choice(_TOPIC_KINDS)
        if kind == DELETE_ID and name not in self._ids:
            kind = CREATE
        argument = {SET: str(self.history.begun), DELETE_ID: self._ids.get(name, "")}.get(kind, "")
        invoked_ns = self._scheduler.now_ns
        is_refused, answer = await self._ask(kind, topic_request(kind, name, argument), rng)
        if is_refused:
            return
        if kind == FIND and answer == EXISTS:
            kind = CREATE  # the model's word for this observation
        if kind == CREATE and answer not in (None, EXISTS):
            self._ids[name] = answer or ""
        if kind == FIND and answer is None:
            return  # a question that was not answered
        self.history.add(self.history.topics, name, process, kind, argument, answer, invoked_ns)
        if self._names[place] == name and len(self.history.topics[name]) >= _OPERATIONS_OF_A_NAME:
            self._names[place], self._next_name = f"t{self._next_name}", self._next_name + 1

    async def _change_setting(self, process: str, rng: random.Random, value: str) -> None:
        key = rng.choice(tuple(SETTINGS))
        invoked_ns = self._scheduler.now_ns
        is_refused, answer = await self._ask(SET, setting_request(key, value), rng)
        if not is_refused:
            self.history.add(self.history.settings, key, process, SET, value, answer, invoked_ns)

    async def _call_any(self, request: object) -> Any:
        _, response = await self._call(request, self._scheduler.rng(f"operator/{self._scheduler.now_ns}"))
        return response

    async def _change_level(self, rng: random.Random) -> None:
        """Refused while a node does not support it.

        The lower level has neither controllers, nor deleted topics, nor the incarnation: a step down forgets much.
        """
        level = rng.choice((INCARNATION_LEVEL - 1, LATEST_LEVEL, LATEST_LEVEL))
        _, response = await self._call(level_request(level), rng)
        if response is not None and code_of(response) == ErrorCode.NONE:
            self._cluster.count("levels changed")

    async def _ask(self, kind: str, request: object, rng: random.Random) -> tuple[bool, str | None]:
        """(certainly not carried out, else the answer in the words of the model; None: not known)."""
        is_refused, response = await self._call(request, rng)
        return is_refused, None if response is None else answer_of(kind, response)

    async def _call(self, request: object, rng: random.Random) -> tuple[bool, Any]:
        """(certainly not carried out, else the response; None: none came)."""
        serving = self._cluster.layout.serving
        broker = rng.choice(serving) if serving and rng.random() < _THROUGH_BROKER else None
        until_ns = self._scheduler.now_ns + _LIMIT_MS * NS_PER_MS
        if rng.random() < _ASTRAY:
            self._believed = rng.randrange(len(self._cluster.layout.controllers))
        while self._scheduler.now_ns < until_ns:
            try:
                response = await self._connection(broker).call(request, CALL_MS)
            except NotDelivered:
                pass
            except RpcError:
                return False, None
            else:
                if code_of(response) in REFUSED:
                    self.history.refused += 1
                    return True, None
                if code_of(response) not in AGAIN:
                    return False, response
            self._believed = (self._believed + 1) % len(self._cluster.layout.controllers)
            await asyncio.sleep(rng.uniform(*_PAUSE_S))
        self.history.refused += 1
        return True, None

    def _connection(self, broker: str | None) -> Connection:
        """To this broker, or to the controller that is believed to be active."""
        if broker is not None:
            return self._connect(client_address(broker), internal=False)
        return self._connect(internal_address(list(self._cluster.layout.controllers)[self._believed]), internal=True)

    def _connect(self, address: Address, *, internal: bool) -> Connection:
        if address not in self._connections:
            self._connections[address] = self._transport.connect(address, internal=internal)
        return self._connections[address]

    # --- reads of a broker's own copy ---

    async def _read(self, process: str, rng: random.Random, host: str) -> None:
        machine = self._cluster.machines[host]
        life = machine.life
        connection = self._connection(host)
        try:
            found = await (self._find(connection, rng) if rng.random() < 0.5 else self._describe(connection, rng))
        except RpcError:
            return
        if found is None or machine.life != life:
            return  # which process answered is not known
        history, key, value = found
        stream = f"{process} at {host}, life {life}"
        history.setdefault(stream, []).append(Read(key, value, at_most=self._cluster.committed))

    async def _read_confirmed(self, process: str, rng: random.Random) -> None:
        """Ask the quorum what is committed, wait until a broker shows that, and read there: linearizable."""
        invoked_ns, committed = self._scheduler.now_ns, self._cluster.committed
        is_refused, response = await self._call(DescribeQuorumRequest(), rng)
        if is_refused or response is None or response.error_code:
            return
        self.history.confirmed += 1
        if response.high_watermark < committed:
            what = f"{process} was told {response.high_watermark} of epoch {response.leader_epoch} by the quorum"
            self._cluster.findings.broken("confirmed-read", f"{what}; {committed} was committed before it asked")
        serving = self._cluster.layout.serving
        if not serving:
            return
        connection = self._connection(rng.choice(serving))
        try:
            if not await self._shows(connection, response.high_watermark):
                return
            found = await self._describe(connection, rng)
        except RpcError:
            return
        if found is not None:
            _, key, value = found
            self.history.add(self.history.settings, key, process, READ, "", value, invoked_ns)

    async def _shows(self, connection: Connection, offset: int) -> bool:
        """Whether a broker shows the metadata up to `offset`, within some time. Raises RpcError."""
        until_ns = self._scheduler.now_ns + _SHOWN_MS * NS_PER_MS
        while self._scheduler.now_ns < until_ns:
            response = await connection.call(DescribeClusterRequest(include_fenced_brokers=True), CALL_MS)
            if not response.error_code and response.metadata_offset >= offset:
                return True
            await asyncio.sleep(0.05)
        return False

    async def _find(self, connection: Connection, rng: random.Random) -> tuple[dict[str, list[Read]], str, str] | None:
        name = rng.choice(self._names)
        request = MetadataRequest(all_topics=False, topics=(TopicQuery(name=name),), allow_auto_topic_creation=False)
        response = await connection.call(request, CALL_MS)
        if response.error_code:
            return None
        (topic,) = response.topics
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return self.history.topic_reads, name, ABSENT_VERSION
        return None if topic.error_code else (self.history.topic_reads, name, topic.topic_id.hex())

    async def _describe(
        self, connection: Connection, rng: random.Random
    ) -> tuple[dict[str, list[Read]], str, str] | None:
        key = rng.choice(tuple(SETTINGS))
        resource = ConfigResource(resource_type=BROKER_RESOURCE, resource_name="", names=(SETTINGS[key],))
        response = await connection.call(DescribeConfigsRequest(resources=(resource,)), CALL_MS)
        if response.error_code or response.results[0].error_code:
            return None
        configs = response.results[0].configs
        return self.history.setting_reads, key, (configs[0].value or "") if configs else ""

    # --- mistakes ---

    def _crashed(self, name: str, error: BaseException) -> None:
        self._cluster.findings.broken("client-crashed", f"{name}: {error!r}")

    def _on_error(self, context: dict[str, object]) -> None:
        if "exception" in context and "handle" in context:
            self._cluster.findings.broken("client-crashed", f"{context.get('message')}: {context.get('exception')!r}")
