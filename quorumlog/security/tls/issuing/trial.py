"""Whether the files of a folder work: each pair is read as a listener reads it, and shakes hands in memory."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain

from quorumlog.security.tls.contexts import client_context, server_context
from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.files import RealFiles
from quorumlog.security.tls.issuing.folder import TRUST, Folder, Issued, hosts_of
from quorumlog.security.tls.material import Material, read_material
from quorumlog.security.tls.refusals import why_failed
from quorumlog.security.tls.settings import ClientAuth, ClientTls, ServerTls

SOON = timedelta(days=14)
MAX_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one pair. problem: empty: it works. host: where it was tried, if it is of a node."""

    name: str
    problem: str
    ends: datetime
    host: str = ""

    @property
    def ends_soon(self) -> bool:
        return not self.problem and self.ends - datetime.now(UTC) < SOON


def verdicts(folder: Folder, now: datetime) -> Iterator[Verdict]:
    """Of all pairs, as strict readers judge them: a node at each of its hosts, a client at a node. Raises NotThere,
    BadTls."""
    issued = folder.issued()
    folder.trusted()
    for one in issued:
        if one.name.startswith("node-"):
            yield from _of_node(folder, one, now)
        else:
            yield _of_client(folder, one, next((node for node in issued if node.name.startswith("node-")), None), now)


def _of_node(folder: Folder, node: Issued, now: datetime) -> Iterator[Verdict]:
    ends = node.certificate.not_valid_after_utc
    try:
        server = _server(folder, node, now)
        for host in hosts_of(node.certificate):
            problem = _try(server, client_context(_client(folder, node), _material(folder, node, now)), host)
            yield Verdict(node.name, problem, ends, host)
    except BadTls as error:
        yield Verdict(node.name, str(error), ends)


def _of_client(folder: Folder, client: Issued, node: Issued | None, now: datetime) -> Verdict:
    ends = client.certificate.not_valid_after_utc
    try:
        context = client_context(_client(folder, client), _material(folder, client, now))
        if node is None:
            return Verdict(client.name, "", ends)
        host = next(iter(hosts_of(node.certificate)), "localhost")
        return Verdict(client.name, _try(_server(folder, node, now), context, host), ends)
    except BadTls as error:
        return Verdict(client.name, str(error), ends)


def _server(folder: Folder, node: Issued, now: datetime) -> ssl.SSLContext:
    tls = ServerTls(
        keystore_location=str(folder.path / f"{node.name}.keystore.pem"),
        truststore_location=str(folder.path / TRUST),
        client_auth=ClientAuth.REQUIRED,
        strict=True,
    )
    return server_context(tls, read_material(tls, RealFiles(), int(now.timestamp() * 1000)))


def _client(folder: Folder, issued: Issued) -> ClientTls:
    return ClientTls(
        keystore_location=str(folder.path / f"{issued.name}.keystore.pem"),
        truststore_location=str(folder.path / TRUST),
        strict=True,
    )


def _material(folder: Folder, issued: Issued, now: datetime) -> Material:
    return read_material(_client(folder, issued), RealFiles(), int(now.timestamp() * 1000))


def _try(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> str:
    """Empty: they shook hands."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host.replace("*", "any", 1)),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(ends)
    for end in chain.from_iterable(ends for _ in range(MAX_ROUNDS)):
        if end not in waiting:
            continue
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLError as error:
            return why_failed(error)
        waiting.remove(end)
    return "" if not waiting else "the handshake does not end"
