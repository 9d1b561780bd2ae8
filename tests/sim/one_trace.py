"""A small cluster with every fault, as a function of the seed. As a program it prints the hash of its trace."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

from jepsen.sim.network.link import LinkProfile
from jepsen.sim.network.network import Network
from jepsen.sim.network.transport import SimTransport
from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, NS_PER_S, Scheduler
from jepsen.sim.trace import Trace
from quorumlog.messages.controller import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quorumlog.messages.quorum import VoteRequest, VoteResponse
from quorumlog.rpc.transport import Address, Context, Identity, Listener, RpcError

HOSTS = ("a", "b", "c")
PROFILE = LinkProfile(loss=0.02, duplicate=0.1, hold=0.02, hold_min_ns=NS_PER_MS, hold_max_ns=NS_PER_S)


async def handle(context: Context, request: Any) -> Any:
    await asyncio.sleep(0.001)
    return VoteResponse() if isinstance(request, VoteRequest) else BrokerHeartbeatResponse()


async def talk(transport: SimTransport, host: str) -> None:
    peers = [transport.connect(Address(other, 1), internal=True) for other in HOSTS if other != host]
    for number in range(1_000_000):
        for peer in peers:
            try:
                await peer.call(_vote(number), 100)
                await peer.call(_heartbeat(number), 100)
            except RpcError:
                await asyncio.sleep(0.01)


def _vote(epoch: int) -> VoteRequest:
    return VoteRequest(epoch=epoch, candidate_id=1, voter_id=2, last_epoch=0, last_epoch_end_offset=0, pre_vote=True)


def _heartbeat(epoch: int) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=1,
        broker_epoch=epoch,
        current_metadata_offset=0,
        want_fence=False,
        want_shutdown=False,
        incarnation_id=bytes(16),
    )


def start(network: Network, host: str) -> SimLoop:
    loop = SimLoop(network.scheduler, host)
    shown = Identity(cluster_id="c", node_id=ord(host), incarnation_id=bytes(16), secret=b"s")
    transport = SimTransport(network, host, loop, shown, on_crash=_crash)
    loop.create_task(transport.listen(Listener(name="I", address=Address(host, 1), internal=True), handle))
    loop.create_task(talk(transport, host))
    return loop


def _crash(name: str, error: BaseException) -> None:
    raise AssertionError(name) from error


def trace_of(seed: int, seconds: int = 5) -> tuple[str, int]:
    """The trace's hash and its number of lines."""
    scheduler = Scheduler(seed, Trace())
    network = Network(scheduler, PROFILE)
    loops = {host: start(network, host) for host in HOSTS}
    chaos = scheduler.rng("chaos")
    for _ in range(seconds * 10):
        scheduler.run_for(NS_PER_S // 10)
        host, other = chaos.sample(HOSTS, 2)
        match chaos.randrange(5):
            case 0:
                loops[host].kill()
                loops[host] = start(network, host)
            case 1:
                network.cut(host, other)
            case 2:
                network.heal_all()
            case 3:
                loops[host].pause()
            case _:
                loops[host].resume()
    for loop in loops.values():
        loop.kill()
    killed_coroutines.empty()
    return scheduler.trace.hexdigest(), scheduler.trace.lines


if __name__ == "__main__":
    logging.getLogger("quorumlog").setLevel(logging.CRITICAL)  # duplicated calls are refused, and logged
    sys.stdout.write(trace_of(int(sys.argv[1]))[0] + "\n")
