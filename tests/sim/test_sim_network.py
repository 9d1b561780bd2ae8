"""Faults of the simulated network, observed through the transport's guarantees (quorumlog.rpc.transport)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from jepsen.sim.network.link import LinkProfile
from jepsen.sim.network.message import Message, Phase, Verdict
from jepsen.sim.network.network import KEEPALIVE_NS, Network
from jepsen.sim.network.transport import SimTransport
from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, NS_PER_S, Scheduler
from quorumlog.ids import ZERO_UUID
from quorumlog.messages.controller import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    ProbeRequest,
    ProbeResponse,
)
from quorumlog.messages.fetch import FetchRequest, FetchResponse
from quorumlog.messages.quorum import VoteRequest, VoteResponse
from quorumlog.rpc.transport import (
    Address,
    Answered,
    Connection,
    Context,
    Identity,
    Listener,
    NoProof,
    NotDelivered,
    OutcomeUnknown,
    Refused,
)

SERVER = Address("b", 9093)
SECOND_S = 1


def identity(host: str) -> Identity:
    node_id = ord(host)
    return Identity(cluster_id="c", node_id=node_id, incarnation_id=bytes([node_id]) * 16, secret=b"s")


def heartbeat(number: int) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=1,
        broker_epoch=number,
        current_metadata_offset=0,
        want_fence=False,
        want_shutdown=False,
        incarnation_id=ZERO_UUID,
    )


def vote(epoch: int = 1) -> VoteRequest:
    return VoteRequest(epoch=epoch, candidate_id=1, voter_id=2, last_epoch=0, last_epoch_end_offset=0, pre_vote=False)


class Cluster:
    """Process `a` calls and process `b` serves; each has its own loop."""

    def __init__(self, *, internal: bool = True) -> None:
        self.internal = internal
        self.scheduler = Scheduler(seed=4711)
        self.network = Network(self.scheduler)
        self.a, self.b = SimLoop(self.scheduler, "a"), SimLoop(self.scheduler, "b")
        self.transport = self._transport("a", self.a)
        self.requests: list[Any] = []
        self.contexts: list[Context] = []
        self.start_server()

    def _transport(self, host: str, loop: SimLoop) -> SimTransport:
        return SimTransport(self.network, host, loop, identity(host), on_crash=_crash)

    def start_server(self) -> None:
        listener = Listener(name="I", address=SERVER, internal=self.internal)
        self.b.run_until_complete(self._transport("b", self.b).listen(listener, self.handle))

    def restart_server(self) -> None:
        self.b.kill()
        self.b = SimLoop(self.scheduler, "b")
        self.start_server()

    async def handle(self, context: Context, request: Any) -> Any:
        self.requests.append(request)
        self.contexts.append(context)
        match request:
            case BrokerHeartbeatRequest():
                return BrokerHeartbeatResponse()
            case ProbeRequest():
                return ProbeResponse(node_id=98, incarnation_id=bytes([98]) * 16)
            case FetchRequest():
                return FetchResponse(session_id=request.max_wait_ms)
            case VoteRequest():
                return VoteResponse(vote_granted=True, leader_epoch=request.epoch)
            case _:
                raise AssertionError(request)

    def connect(self) -> Connection:
        return self.transport.connect(SERVER, internal=self.internal)

    async def ask(self, request: Any) -> Any:
        return await self.connect().call(request, 1_000)

    def end(self) -> None:
        self.a.kill()
        self.b.kill()
        killed_coroutines.empty()

    def run(self, scenario: Coroutine[Any, Any, Any]) -> Any:
        return self.a.run_until_complete(scenario)


def _crash(name: str, error: BaseException) -> None:
    raise AssertionError(name) from error


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.end()


def test_no_object_is_shared(cluster: Cluster) -> None:
    request = vote()
    cluster.run(cluster.ask(request))
    assert cluster.requests == [request] and cluster.requests[0] is not request


def test_a_killed_process_is_detected_then_refuses_then_is_reached_again(cluster: Cluster) -> None:
    async def scenario() -> None:
        connection = cluster.connect()
        await connection.call(heartbeat(1), 1_000)
        closed = asyncio.Event()
        connection.on_closed(closed.set)
        cluster.b.kill()
        await closed.wait()
        assert cluster.a.time() < 1
        with pytest.raises(NotDelivered):
            await connection.call(heartbeat(2), 1_000)
        assert await cluster.transport.probe(SERVER, 1_000) == Refused()

    cluster.run(scenario())
    cluster.restart_server()
    assert cluster.run(cluster.transport.probe(SERVER, 1_000)) == Answered(98, bytes([98]) * 16)


def test_a_killed_caller_is_detected_by_the_server(cluster: Cluster) -> None:
    cluster.run(cluster.ask(heartbeat(1)))
    closed: list[int] = []
    cluster.contexts[0].on_closed(lambda: closed.append(cluster.scheduler.now_ns))
    cluster.a.kill()
    cluster.scheduler.run_for(NS_PER_S)
    assert len(closed) == 1


@pytest.mark.parametrize("direction", [("a", "b"), ("b", "a")], ids=["request lost", "answer lost"])
def test_a_cut_is_silence_until_the_deadline(cluster: Cluster, direction: tuple[str, str]) -> None:
    async def scenario() -> None:
        connection = cluster.connect()
        await connection.call(vote(1), 1_000)
        cluster.network.cut(*direction)
        before = cluster.a.time()
        with pytest.raises(OutcomeUnknown):
            await connection.call(vote(2), 1_000)
        assert cluster.a.time() == pytest.approx(before + 1, abs=1e-6)
        assert [request.epoch for request in cluster.requests] == ([1] if direction[0] == "a" else [1, 2])
        assert isinstance(await cluster.transport.probe(SERVER, 500), NoProof)
        with pytest.raises(NotDelivered):
            await cluster.connect().call(vote(3), 1_000)
        cluster.network.heal(*direction)
        assert (await connection.call(vote(4), 1_000)).leader_epoch == 4

    cluster.run(scenario())


def test_an_ordered_call_is_late_on_a_short_cut_and_a_long_cut_breaks_the_session(cluster: Cluster) -> None:
    async def scenario() -> None:
        connection = cluster.connect()
        await connection.call(heartbeat(1), 1_000)
        cluster.network.cut_both("a", "b")
        late = [asyncio.ensure_future(connection.call(heartbeat(number), 3_000)) for number in (2, 3)]
        await asyncio.sleep(1)
        assert len(cluster.requests) == 1
        cluster.network.heal_all()
        for call in late:
            await call
        assert [request.broker_epoch for request in cluster.requests] == [1, 2, 3]

        broken: list[float] = []
        connection.on_closed(lambda: broken.append(cluster.a.time()))
        cut_at = cluster.a.time()
        cluster.network.cut("a", "b")
        with pytest.raises(OutcomeUnknown):
            await connection.call(heartbeat(4), 60_000)
        assert broken == [pytest.approx(cut_at + KEEPALIVE_NS / NS_PER_S)]

    cluster.run(scenario())


def test_a_kill_during_a_cut_is_detected_after_it_heals(cluster: Cluster) -> None:
    cluster.run(cluster.ask(heartbeat(1)))
    closed: list[int] = []
    cluster.contexts[0].on_closed(lambda: closed.append(1))
    cluster.network.cut("a", "b")
    cluster.a.kill()
    cluster.scheduler.run_for(2 * NS_PER_S)
    assert closed == []
    cluster.network.heal("a", "b")
    cluster.scheduler.run_for(NS_PER_S)
    assert closed == [1]


def test_a_lost_ordered_message_breaks_the_session(cluster: Cluster) -> None:
    async def scenario() -> None:
        connection = cluster.connect()
        await connection.call(heartbeat(1), 1_000)
        closed = asyncio.Event()
        connection.on_closed(closed.set)
        cluster.network.link("a", "b").profile = LinkProfile(loss=1.0)
        with pytest.raises(OutcomeUnknown, match="broke"):
            await connection.call(heartbeat(2), 60_000)
        assert closed.is_set()

    cluster.run(scenario())
    cluster.scheduler.run_for(NS_PER_S)
    gone: list[int] = []
    cluster.contexts[0].on_closed(lambda: gone.append(1))
    assert gone == [1]


def test_a_lost_unary_message_is_silence(cluster: Cluster) -> None:
    async def scenario() -> None:
        connection = cluster.connect()
        await connection.call(vote(1), 1_000)
        cluster.network.set_profile(LinkProfile(loss=1.0))
        with pytest.raises(OutcomeUnknown, match="no answer"):
            await connection.call(vote(2), 1_000)

    cluster.run(scenario())


def test_a_lost_proof_means_that_no_call_was_sent(cluster: Cluster) -> None:
    cluster.network.set_profile(LinkProfile(loss=1.0))
    with pytest.raises(NotDelivered, match="not answered"):
        cluster.run(cluster.ask(vote()))


@pytest.mark.parametrize(("internal", "times"), [(True, 1), (False, 2)], ids=["internal", "client"])
def test_a_duplicated_request_is_executed_once_between_nodes_and_answered_once(internal: bool, times: int) -> None:
    """The counter of its proof was used. At a client listener there is none, and the request is executed twice."""
    cluster = Cluster(internal=internal)
    cluster.network.set_profile(LinkProfile(duplicate=1.0))

    async def scenario() -> None:
        connection = cluster.connect()
        for number in range(10):
            answer = await connection.call(FetchRequest(max_wait_ms=number, min_bytes=0, max_bytes=1), 1_000)
            assert answer.session_id == number
        await asyncio.sleep(1)

    cluster.run(scenario())
    cluster.end()
    waits = sorted(request.max_wait_ms for request in cluster.requests)
    assert waits == sorted(list(range(10)) * times)


def test_an_ordered_message_is_never_duplicated(cluster: Cluster) -> None:
    cluster.network.set_profile(LinkProfile(duplicate=1.0))
    cluster.run(cluster.ask(heartbeat(1)))
    cluster.scheduler.run_for(NS_PER_S)
    assert len(cluster.requests) == 1


def test_a_restarted_server_knows_no_session_and_the_call_is_repeated_in_a_new_one(cluster: Cluster) -> None:
    connection = cluster.connect()
    cluster.run(connection.call(vote(1), 1_000))
    cluster.restart_server()
    cluster.scheduler.run_for(NS_PER_S)
    assert cluster.run(connection.call(vote(2), 1_000)).leader_epoch == 2
    assert [request.epoch for request in cluster.requests] == [1, 2]


def test_an_idle_connection_sends_one_message_for_a_call(cluster: Cluster) -> None:
    """Proofs cost round trips after a connect, and never later."""
    sent: list[str] = []

    def note(message: Message) -> Verdict:
        sent.append(message.name)
        return Verdict.PASS

    async def scenario() -> None:
        connection = cluster.connect()
        cluster.network.intercept = note
        await connection.call(vote(1), 1_000)
        assert sent == ["request Prove", "response Prove"] * 2 + ["request Vote", "response Vote"]
        del sent[:]
        for epoch in (2, 3):
            await connection.call(vote(epoch), 1_000)
        assert sent == ["request Vote", "response Vote"] * 2

    cluster.run(scenario())


def test_the_interceptor_holds_one_request_until_it_is_released(cluster: Cluster) -> None:
    def hold_the_first(message: Message) -> Verdict:
        first = message.phase is Phase.REQUEST and message.name == "request Vote" and cluster.requests == []
        return Verdict.HOLD if first else Verdict.PASS

    async def scenario() -> None:
        connection = cluster.connect()
        cluster.network.intercept = hold_the_first
        held = asyncio.ensure_future(connection.call(vote(1), 60_000))
        await asyncio.sleep(SECOND_S)
        cluster.network.intercept = None
        assert (await connection.call(vote(2), 1_000)).leader_epoch == 2
        cluster.network.release_held()
        assert (await held).leader_epoch == 1

    cluster.run(scenario())


def test_a_held_ordered_request_delays_later_ones(cluster: Cluster) -> None:
    def hold(message: Message) -> Verdict:
        return Verdict.HOLD

    async def scenario() -> None:
        connection = cluster.connect()
        await connection.call(heartbeat(1), 1_000)
        cluster.network.intercept = hold
        calls = [asyncio.ensure_future(connection.call(heartbeat(2), 60_000))]
        await asyncio.sleep(0)
        cluster.network.intercept = None
        calls.append(asyncio.ensure_future(connection.call(heartbeat(3), 60_000)))
        await asyncio.sleep(SECOND_S)
        cluster.network.cut("a", "b")
        cluster.network.heal("a", "b")
        assert len(cluster.requests) == 1
        cluster.network.release_held()
        for call in calls:
            await call
        assert [request.broker_epoch for request in cluster.requests] == [1, 2, 3]

    cluster.run(scenario())


def test_a_paused_process_is_silent_but_not_dead(cluster: Cluster) -> None:
    async def scenario() -> None:
        connection = cluster.connect()
        await connection.call(heartbeat(1), 1_000)
        cluster.b.pause()
        assert isinstance(await cluster.transport.probe(SERVER, 500), NoProof)
        late = asyncio.ensure_future(connection.call(heartbeat(2), 60_000))
        await asyncio.sleep(SECOND_S)
        assert not late.done()
        cluster.b.resume()
        await late

    cluster.run(scenario())


def test_a_host_without_power_is_silent(cluster: Cluster) -> None:
    async def scenario() -> None:
        connection = cluster.connect()
        await connection.call(heartbeat(1), 1_000)
        closed: list[float] = []
        connection.on_closed(lambda: closed.append(cluster.a.time()))
        cluster.network.power_off("b")
        cluster.b.kill()
        assert isinstance(await cluster.transport.probe(SERVER, 1_000), NoProof)
        assert closed == []
        cluster.network.power_on("b")
        assert await cluster.transport.probe(SERVER, 1_000) == Refused()
        await asyncio.sleep(SECOND_S)
        assert len(closed) == 1

    cluster.run(scenario())


def test_a_wrong_refusal_can_be_switched_on(cluster: Cluster) -> None:
    cluster.network.wrong_refusals["b"] = None
    assert cluster.run(cluster.transport.probe(SERVER, 1_000)) == Refused()
    del cluster.network.wrong_refusals["b"]
    assert isinstance(cluster.run(cluster.transport.probe(SERVER, 1_000)), Answered)


def test_a_slow_link_delays_by_its_bandwidth(cluster: Cluster) -> None:
    async def scenario() -> float:
        connection = cluster.connect()
        await connection.call(vote(1), 1_000)
        cluster.network.set_profile(LinkProfile(min_delay_ns=50 * NS_PER_MS, mean_extra_ns=0, bytes_per_s=1_000))
        before = cluster.a.time()
        await connection.call(vote(1), 10_000)
        return cluster.a.time() - before

    assert 0.1 < cluster.run(scenario()) < 0.2


def test_a_handler_is_cancelled_when_its_caller_is_gone(cluster: Cluster) -> None:
    ended: list[str] = []

    async def stuck(context: Context, request: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(type(request).__name__)

    cluster.handle = stuck  # type: ignore[method-assign]
    cluster.restart_server()

    async def scenario() -> None:
        connection = cluster.connect()
        with pytest.raises(OutcomeUnknown):
            await connection.call(vote(), 500)
        await asyncio.sleep(SECOND_S)
        assert ended == ["VoteRequest"]
        task = asyncio.ensure_future(connection.call(vote(), 60_000))
        await asyncio.sleep(SECOND_S)
        task.cancel()
        await asyncio.sleep(SECOND_S)
        assert ended == ["VoteRequest"] * 2
        task = asyncio.ensure_future(connection.call(heartbeat(1), 60_000))
        await asyncio.sleep(SECOND_S)
        await connection.close()
        with pytest.raises(OutcomeUnknown):
            await task
        await asyncio.sleep(SECOND_S)
        assert ended == ["VoteRequest"] * 2 + ["BrokerHeartbeatRequest"]

    cluster.run(scenario())
