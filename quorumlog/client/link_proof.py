"""Asks each node for its cluster's id before a client that means one cluster asks anything else of it.

An address is no proof: when a cluster has stopped, another one may take its ports. Calls to one node keep their order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

from quorumlog.client.errors import WrongCluster
from quorumlog.messages.cluster import MetadataRequest, MetadataResponse
from quorumlog.rpc.transport import Address, Connection, NotDelivered, RpcError


@dataclass(slots=True)
class _Proof:
    """waiting: calls that were begun before the proof was there, and have not been sent."""

    is_proven: bool = False
    waiting: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Proofs:
    """Of the addresses that a client has used. wanted: the id of the cluster that is meant."""

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        self._by_address: dict[Address, _Proof] = {}

    def call(self, connection: Connection, request: Any, timeout_ms: int) -> Awaitable[Any]:
        """Like `Connection.call`. Raises WrongCluster before `request` is sent to a node of another cluster."""
        proof = self._by_address.setdefault(connection.address, _Proof())
        if proof.is_proven and not proof.waiting:
            return connection.call(request, timeout_ms)
        proof.waiting += 1
        return self._call_once_proven(proof, connection, request, timeout_ms)

    async def _call_once_proven(self, proof: _Proof, connection: Connection, request: Any, timeout_ms: int) -> Any:
        try:
            async with proof.lock:  # first come, first served
                if not proof.is_proven:
                    await self._prove(connection, timeout_ms)
                    proof.is_proven = True
        finally:
            proof.waiting -= 1
        return await connection.call(request, timeout_ms)

    async def _prove(self, connection: Connection, timeout_ms: int) -> None:
        """A node that says no id is believed, as before there were ids in its answers."""
        try:
            response: MetadataResponse = await connection.call(
                MetadataRequest(all_topics=False, allow_auto_topic_creation=False), timeout_ms
            )
        except RpcError as error:
            raise NotDelivered(str(error)) from error  # the request itself was not sent
        if response.cluster_id and response.cluster_id != self._wanted:
            raise WrongCluster(str(connection.address), response.cluster_id, self._wanted)
