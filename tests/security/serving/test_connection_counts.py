"""What is counted of connections; a stranger adds no series, whatever it says its software is."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from authority import Authority, client_context, server_context
from door import METADATA, Door, door
from test_sasl_listener import call, log_in, protected, rules, serves

from quorumlog.messages.cluster import MetadataResponse
from quorumlog.wire.format.header import API_VERSIONS_KEY
from quorumlog.wire.serving.counts import MAX_SOFTWARE_CHARACTERS
from quorumlog_server.metrics import connections
from quorumlog_server.metrics.reading import Labels, Reading, Source, Value
from quorumlog_server.metrics.series import Series
from tests.wire.lane import Wire, until


def shown(listener: Door) -> dict[Series, dict[Labels, Value]]:
    logins = SimpleNamespace(strangers=lambda: len(listener.strangers), counts={}, strangers_told=dict)
    keys = SimpleNamespace(by_listener={})
    edges = SimpleNamespace(connections=listener.transport.counts, logins=logins, listener_keys=keys)
    node: Any = SimpleNamespace(edges=edges)
    out = Reading()
    connections.collect(Source(node, Any, 0, 0), out)  # type: ignore[arg-type]
    return out.rows


async def say(peer: Wire, name: str, version: str = "1") -> None:
    await call(peer, API_VERSIONS_KEY, 3, {"client_software_name": name, "client_software_version": version})


def test_the_software_of_a_stranger_is_no_series() -> None:
    async def scenario() -> None:
        async with door(protected()) as listener:
            strangers = [await listener.open() for _ in range(5)]
            for number, peer in enumerate(strangers):
                await say(peer, f'odd "{number}"')
            found = shown(listener)
            assert connections.VERSIONS not in found
            assert found[connections.UNAUTHENTICATED] == {(): 5}
            for peer in strangers:
                peer.close()

    asyncio.run(scenario())


def test_the_software_of_a_client_is_shown_from_its_login_to_its_end() -> None:
    async def scenario() -> None:
        async with door(protected()) as listener:
            peer, other = await listener.open(), await listener.open()
            await say(peer, 'a "java"\n', "4.3.1")
            await say(other, 'a "java"\n', "4.3.1")
            await log_in(peer, "ada")
            assert shown(listener)[connections.VERSIONS] == {('a "java"\n', "4.3.1"): 1}
            await log_in(other, "ada")
            assert shown(listener)[connections.VERSIONS] == {('a "java"\n', "4.3.1"): 2}
            peer.close()
            other.close()
            await until(lambda: connections.VERSIONS not in shown(listener))
            assert not listener.transport.counts.software

    asyncio.run(scenario())


def test_of_a_plain_listener_the_software_is_shown_at_once_and_the_last_one_counts() -> None:
    async def scenario() -> None:
        async with door(None) as listener:
            peer = await listener.open()
            await say(peer, "first")
            await say(peer, "x" * 1_000, "")
            name = "x" * MAX_SOFTWARE_CHARACTERS
            assert shown(listener)[connections.VERSIONS] == {(name, "unknown"): 1}
            peer.close()

    asyncio.run(scenario())


def test_connections_come_and_go() -> None:
    async def scenario() -> None:
        async with door(None) as listener:
            peers = [await listener.open() for _ in range(3)]
            for peer in peers:
                await serves(peer)
            peers.pop().close()
            await until(lambda: shown(listener)[connections.CONNECTIONS] == {("TEST",): 2})
            found = shown(listener)
            assert found[connections.CREATED] == {("TEST",): 3} and found[connections.CLOSED] == {("TEST",): 1}
            for peer in peers:
                peer.close()

    asyncio.run(scenario())


def test_renewed_and_expired_sessions_are_counted() -> None:
    async def scenario() -> None:
        async with door(protected(rules(max_reauth_ms=400))) as listener:
            peer = await listener.open()
            await log_in(peer, "ada")
            await log_in(peer, "ada")
            assert shown(listener)[connections.REAUTHENTICATIONS] == {(): 1}
            await asyncio.sleep(0.5)
            peer.send(METADATA)
            await until(lambda: shown(listener)[connections.EXPIRED] == {(): 1})
            peer.close()

    asyncio.run(scenario())


def test_handshakes_are_timed_and_probes_are_no_failures(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = server_context(authority.issue("node"), ssl.CERT_NONE)

    async def scenario() -> None:
        async with door(protected(context=lambda: context)) as listener:
            probe = await listener.open()
            probe.close()
            peer = await listener.open(client_context(authority.ca))
            await until(lambda: listener.transport.counts.handshakes.count == 1)
            assert 0 < listener.transport.counts.handshakes.sum < 10
            await until(lambda: shown(listener)[connections.PROBES] == {(): 1})
            assert connections.REFUSED not in shown(listener)
            peer.close()

    asyncio.run(scenario())


def test_a_held_connection_is_counted_while_it_is_held() -> None:
    async def throttled(_context: Any, _request: Any) -> MetadataResponse:
        return MetadataResponse(cluster_id="c", throttle_time_ms=200)

    async def scenario() -> None:
        async with door(None, handler=throttled) as listener:
            peer = await listener.open()
            await serves(peer)
            counts = listener.transport.counts
            await until(lambda: counts.throttled == 1)
            await until(lambda: counts.throttled == 0)
            await serves(peer)
            peer.close()
            await until(lambda: shown(listener)[connections.CLOSED] == {("TEST",): 1})
            assert counts.throttled == 0

    asyncio.run(scenario())


def test_strangers_at_an_internal_listener_are_counted_with_the_others() -> None:
    async def scenario() -> None:
        async with door(None, internal=True) as listener:
            (await listener.open()).close()
            foreign = await listener.open()
            foreign.writer.write(b"\x16\x03\x01\x00\xf8\x01\x00\x00\xf4\x03\x03")
            await until(lambda: shown(listener)[connections.PROBES] == {(): 1})
            await until(lambda: shown(listener).get(connections.REFUSED) == {("foreign",): 1})
            foreign.close()

    asyncio.run(scenario())
