"""Whom a certificate is issued for: a node with its addresses, or a client with its name."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from quorumlog.ids import NodeId
from quorumlog.security.tls.errors import BadRequest
from quorumlog.security.tls.peer import MAX_NODE_ID

MAX_NAME = 64  # characters of a common name (RFC 5280, ub-common-name)
MAX_HOSTS = 100  # of a node
LOCALHOST = "localhost"
_CLIENT = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._@-]{{0,{MAX_NAME - 1}}}")  # it is a part of file names, too
_ENDINGS = (".keystore", ".librdkafka")
_HOST = re.compile(r"(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NODE = re.compile(r"(0|[1-9][0-9]{0,9})=(.+)")


@dataclass(frozen=True, slots=True)
class NodeSubject:
    """hosts: names, and addresses in their shortest form, each once."""

    node_id: NodeId
    hosts: tuple[str, ...]

    @property
    def file_name(self) -> str:
        return f"node-{self.node_id}"


@dataclass(frozen=True, slots=True)
class ClientSubject:
    name: str

    @property
    def file_name(self) -> str:
        return f"client-{self.name}"


Subject = NodeSubject | ClientSubject


def parse_node(text: str) -> NodeSubject:
    """ID=HOST,HOST...; localhost is added. Raises BadRequest."""
    match = _NODE.fullmatch(text.strip())
    if match is None or int(match[1]) > MAX_NODE_ID:
        raise BadRequest(f"{text!r} is no node: write ID=HOST,HOST..., as in 1=broker1.example,10.0.0.1")
    hosts = [_host(part.strip()) for part in match[2].split(",") if part.strip()]
    if not 1 <= len(hosts) <= MAX_HOSTS:
        raise BadRequest(f"node {match[1]} has {len(hosts)} hosts; name 1 to {MAX_HOSTS} at which it is reached")
    return NodeSubject(NodeId(int(match[1])), tuple(dict.fromkeys([*hosts, LOCALHOST])))


def parse_client(text: str) -> ClientSubject:
    """Raises BadRequest."""
    if text.endswith(_ENDINGS):
        raise BadRequest(f"{text!r} ends like a file of another client; leave {' or '.join(_ENDINGS)} out")
    if not _CLIENT.fullmatch(text):
        raise BadRequest(f"{text!r} is no name for a client: use 1 to {MAX_NAME} letters, digits and . _ @ -")
    return ClientSubject(text)


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _host(text: str) -> str:
    """A number becomes an address entry, however it is written; a name stays one."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if is_address(bare):
        return str(ipaddress.ip_address(bare))
    host = text.lower().rstrip(".")
    if not _HOST.fullmatch(host) or len(host) > 253 or re.fullmatch(r"[0-9.]+", host):
        raise BadRequest(
            f"{text!r} is no host: write a name or an address, without a port; names outside ASCII in the form xn--..."
        )
    return host
