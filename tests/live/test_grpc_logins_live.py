"""A real node whose listener for gRPC has TLS and logins: the users of the cluster log in, as on the lane."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.messages.cluster import DescribeClusterRequest, DescribeClusterResponse
from quorumlog.rpc.grpc.channel_security import ChannelSecurity
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.serving.logins import basic
from quorumlog.rpc.transport import Address, NotAuthenticated
from quorumlog.security.tls.material import Material
from quorumlog.security.tls.settings import ClientTls
from quorumlog.testing.ports import PortPicker
from tests.live.one_process import OneProcess, format_alone
from tests.security.serving.secured_node import make_user
from tests.security.tls.certificates import Pair, authority, leaf

CALL_MS = 8_000
NAME, PASSWORD = "ops,eu=1", 'p"\\;,=%+ :ü'


class SecureGrpc:
    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.address, self.ca = folder, Address("localhost", port), authority()
        self.node: OneProcess | None = None
        self.take("node-1")

    def take(self, name: str) -> None:
        """A certificate for the node."""
        pair: Pair = leaf(self.ca, name, dns=("localhost",), ip=("127.0.0.1",))
        path = self.folder / "node.pem"
        path.touch(0o600)
        path.write_text(pair.key_pem() + pair.pem)

    async def call(self, authorization: str) -> Any:
        async def show() -> str:
            return authorization

        material = Material(authorities=self.ca.pem.encode())
        security = ChannelSecurity(tls=ClientTls(), material=lambda: material, authorization=show)
        connection = GrpcTransport(security=security).connect(self.address, internal=False)
        try:
            return await connection.call(DescribeClusterRequest(), CALL_MS)
        finally:
            await connection.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SecureGrpc]:
    picker = PortPicker()
    first, second = picker.pick(2)
    made = SecureGrpc(tmp_path, second.client)
    path = tmp_path / "server.properties"
    path.write_text(
        f"node.id=1\nlog.dirs={tmp_path}/a\nmetrics.port=0\n"
        f"listeners=CLIENT://127.0.0.1:0,GRPC://{made.address},INTERNAL://127.0.0.1:{first.internal}\n"
        "listener.security.protocol.map=GRPC:SASL_SSL\nallow.anonymous.listeners=CLIENT\n"
        f"ssl.keystore.location={tmp_path}/node.pem\n"
        f"controller.quorum.voters=1@127.0.0.1:{first.internal}\n"
    )
    format_alone(path)
    try:
        with OneProcess(path) as process:
            made.node = process
            yield made
    finally:
        picker.close()


def test_users_of_the_cluster_log_in_by_grpc(node: SecureGrpc) -> None:
    assert node.node is not None

    async def scenario() -> None:
        with pytest.raises(NotAuthenticated, match="refuses the credentials"):
            await node.call(basic(NAME, PASSWORD))
        await asyncio.to_thread(make_user, client, NAME, PASSWORD)
        assert type(await node.call(basic(NAME, PASSWORD))) is DescribeClusterResponse
        for wrong in (basic(NAME, PASSWORD + "x"), basic("nobody", PASSWORD), "Bearer x.y.z"):
            with pytest.raises(NotAuthenticated, match="authentication failed"):
                await node.call(wrong)
        await asyncio.to_thread(make_user, client, NAME, "another")
        with pytest.raises(NotAuthenticated):
            await node.call(basic(NAME, PASSWORD))  # its success was remembered, and ends with the credential
        assert (await node.call(basic(NAME, "another"))).error_code == 0

    client = node.node.address
    asyncio.run(scenario())
    log = (node.folder / "node.log").read_text()
    assert PASSWORD not in log and "another" not in log and "has no credential" in log
