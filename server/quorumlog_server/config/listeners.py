"""Parses the addresses in a configuration: listeners, advertised listeners, and the quorum's voters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quorumlog.ids import NodeId
from quorumlog.rpc.transport import Address, Listener
from quorumlog.settings.node import MOVED_VOTERS
from quorumlog_server.config.properties import ConfigError

GRPC = "GRPC"  # how the name of a listener for gRPC clients begins, where `lane.listeners` does not say which speak it
MAX_PORT = 65_535
_NAMED = re.compile(r"([A-Za-z0-9_.-]+)://(.*)")
_MOVED = re.compile(r"([0-9]{1,9})@([^>]+)>([^>]+)")
_ANY_ADDRESS = ("", "0.0.0.0", "::")


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """One controller of `controller.quorum.voters`; the address is its internal listener."""

    node_id: NodeId
    address: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedVoter:
    """One entry of `controller.quorum.voters.moved`: the internal listener of a controller that has moved."""

    node_id: NodeId
    old: Address
    new: Address


def parse_address(key: str, text: str) -> Address:
    """HOST:PORT, [IPv6]:PORT or :PORT."""
    host, found, port = text.rpartition(":")
    if not found or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > MAX_PORT:
        raise ConfigError(f"{key}: {text!r} has no port; write HOST:PORT")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ConfigError(f"{key}: {text!r}: write an IPv6 address in brackets, [{host}]:{port}")
    return Address(host, int(port))


def parse_named(key: str, texts: Sequence[str]) -> dict[str, Address]:
    """NAME://HOST:PORT each, in the given order. Raises ConfigError if a name or an address is given twice."""
    addresses: dict[str, Address] = {}
    for text in texts:
        match = _NAMED.fullmatch(text)
        if match is None:
            raise ConfigError(f"{key}: {text!r} is not NAME://HOST:PORT")
        name, address = match[1].upper(), parse_address(key, match[2])
        if name in addresses:
            raise ConfigError(f"{key}: {name} is given twice")
        if address.port and address in addresses.values():
            raise ConfigError(f"{key}: two listeners at {address}; each needs a port of its own")
        addresses[name] = address
    return addresses


def parse_voters(texts: Sequence[str]) -> tuple[Voter, ...]:
    """ID@HOST:PORT each, sorted by id."""
    key, voters = "controller.quorum.voters", dict[NodeId, Voter]()
    for text in texts:
        node_id, found, address = text.partition("@")
        if not found or not re.fullmatch(r"[0-9]{1,9}", node_id):
            raise ConfigError(f"{key}: {text!r} is not ID@HOST:PORT")
        if int(node_id) in voters:
            raise ConfigError(f"{key}: node {node_id} is given twice")
        voters[int(node_id)] = Voter(node_id=int(node_id), address=parse_address(key, address))
    return tuple(voters[node_id] for node_id in sorted(voters))


def parse_moved(texts: Sequence[str]) -> tuple[MovedVoter, ...]:
    """ID@HOST:PORT>HOST:PORT each. Raises ConfigError, also if a voter has two new addresses for one old address."""
    found: dict[tuple[NodeId, Address], MovedVoter] = {}
    for text in texts:
        match = _MOVED.fullmatch(text)
        if match is None:
            raise ConfigError(f"{MOVED_VOTERS}: {text!r} is not ID@HOST:PORT>HOST:PORT")
        old, new = (parse_address(MOVED_VOTERS, match[number]) for number in (2, 3))
        if (int(match[1]), old) in found:
            raise ConfigError(f"{MOVED_VOTERS}: node {match[1]} at {old} is given twice")
        found[int(match[1]), old] = MovedVoter(node_id=int(match[1]), old=old, new=new)
    return tuple(found.values())


def parse_servers(texts: Sequence[str]) -> tuple[Address, ...]:
    """HOST:PORT each."""
    return tuple(parse_address("controller.quorum.bootstrap.servers", text) for text in texts)


def internal_name(of_controllers: Sequence[str], between_brokers: str) -> str:
    """The listener for all calls between nodes. of_controllers: Kafka's controller.listener.names, which wins."""
    if len(of_controllers) > 1:
        raise ConfigError(
            f"controller.listener.names={','.join(of_controllers)}: one listener serves controllers; name it"
        )
    return (of_controllers[0] if of_controllers else between_brokers).upper()


def with_grpc(addresses: Mapping[str, Address], internals: Sequence[str]) -> dict[str, Address]:
    """These, and a listener for gRPC clients at a free port beside the first one for clients, if there is none."""
    clients = [name for name in addresses if name not in internals]
    if not clients or any(name.startswith(GRPC) for name in clients):
        return dict(addresses)
    return {**addresses, GRPC: Address(addresses[clients[0]].host, 0)}


def resolve_listeners(
    addresses: Mapping[str, Address], internal: str, broker: bool, *, replication: str = "", lanes: Sequence[str] = ()
) -> tuple[Listener, ...]:
    """Client listeners first. A broker needs one of each kind, a controller alone only the internal one.

    replication: the name of the internal listener for replica fetches, if there is one. lanes: the listeners that speak
    Kafka's protocol.
    """
    if internal not in addresses:
        names = ", ".join(addresses)
        raise ConfigError(
            f"listeners: there is no {internal}, the listener for calls between nodes (controller.listener.names, "
            f"inter.broker.listener.name), among {names}: add {internal}://HOST:PORT, on brokers, too"
        )
    if addresses[internal].port == 0:
        raise ConfigError(f"listeners: {internal} has port 0, but other nodes must know its port; set one")
    if internal in lanes:
        raise ConfigError(f"lane.listeners: {internal} serves the quorum, which speaks gRPC; remove it")
    internals = [name for name in (replication, internal) if name in addresses]
    clients = [name for name in addresses if name not in internals]
    if broker and not clients:
        raise ConfigError("listeners: there is no client listener; add CLIENT://HOST:PORT")
    if not broker and clients:
        raise ConfigError(f"listeners: {clients[0]} is a client listener, but process.roles has no broker; remove it")
    return tuple(
        Listener(name=name, address=addresses[name], internal=name in internals, lane=name in lanes)
        for name in (*clients, *internals)
    )


def resolve_advertised(listeners: Sequence[Listener], given: Mapping[str, Address]) -> dict[str, Address]:
    """The addresses that others connect to, by listener name; port 0 means the actual port."""
    names = [listener.name for listener in listeners]
    for name in given:
        if name not in names:
            raise ConfigError(f"advertised.listeners: {name} is not one of `listeners` ({', '.join(names)})")
    advertised = {listener.name: given.get(listener.name, listener.address) for listener in listeners}
    for name, address in advertised.items():
        if address.host in _ANY_ADDRESS:
            raise ConfigError(
                f"advertised.listeners: {name} would be advertised as {address}, which is not reachable; "
                f"set advertised.listeners={name}://HOST:{address.port}"
            )
    return advertised
