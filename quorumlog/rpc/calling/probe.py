"""The proof that a process is dead: every address of its host refuses, or who answers has another incarnation.

Only a fresh TCP connection counts. A gRPC channel may be in its back-off and report a state that is a second old.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import NamedTuple

from quorumlog.ids import UUID_BYTES
from quorumlog.messages.controller import ProbeRequest, ProbeResponse
from quorumlog.rpc.transport import Address, Answered, Connection, NoProof, Refused, RpcError


class Resolved(NamedTuple):
    family: int
    where: tuple[str, int]


async def try_connect(address: Address) -> Refused | NoProof | None:
    """None: one of the addresses accepted. The caller limits the time."""
    refused = 0
    resolved = await _resolve(address)
    failure = "" if resolved else f"{address.host} has no address"
    for candidate in resolved:
        try:
            await _connect_once(candidate)
            return None
        except ConnectionRefusedError:
            refused += 1
        except OSError as error:
            failure = f"{candidate.where[0]}: {error.strerror or error}"
    return NoProof(failure) if refused < len(resolved) or failure else Refused()


async def _connect_once(candidate: Resolved) -> None:
    with socket.socket(candidate.family, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, candidate.where)


async def _resolve(address: Address) -> list[Resolved]:
    try:
        ip = ipaddress.ip_address(address.host)
    except ValueError:
        return await _look_up(address)
    return [Resolved(socket.AF_INET6 if ip.version == 6 else socket.AF_INET, (address.host, address.port))]


async def _look_up(address: Address) -> list[Resolved]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, ValueError):  # the latter for what no name of a host can be
        return []
    unique = dict.fromkeys(Resolved(family, (str(where[0]), int(where[1]))) for family, _, _, _, where in found)
    return list(unique)


async def ask_who(connection: Connection, timeout_ms: int) -> Answered | NoProof:
    """Ask for the incarnation, and accept only a clear answer.

    connection: a fresh one that shows this node's identity. It is closed.
    """
    try:
        response: ProbeResponse = await connection.call(ProbeRequest(), timeout_ms)
    except RpcError as error:
        return NoProof(str(error))
    finally:
        await connection.close()
    if response.error_code != 0:
        return NoProof(f"answered with error {response.error_code}: {response.error_message}")
    if len(response.incarnation_id) != UUID_BYTES:
        return NoProof("the answer contains no incarnation")
    return Answered(
        response.node_id,
        response.incarnation_id,
        response.directory_id,
        response.is_controller,
        response.min_kraft_version,
        response.max_kraft_version,
    )
