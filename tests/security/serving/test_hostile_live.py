"""Ten thousand peers that never log in, at a real node: its memory holds, its log stays short, and a client gets in.

CVE-2022-34917, CVE-2026-27571, CVE-2026-33219 and CVE-2026-58210 are of this kind: bytes of a stranger are kept before
it is known who it is.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from pathlib import Path

import pytest
from authority import Authority
from secured_node import make_user, secured_node, writes_and_reads

PEERS, HELD = 10_000, 300
MOST_MORE_KIB = 64 * 1024  # 32 MiB of frames, and what 1,000 connections and their handshakes cost
ATTACKS = {
    "half frames": struct.pack(">i", 500_000) + b"\x00\x24\x00\x02",
    "half a hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a hello that promises much": b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(8_000),
    "nothing": b"",
}


def resident_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_strangers_cost_little(tmp_path: Path, protocol: str) -> None:
    authority = Authority(tmp_path)
    more = f"ssl.keystore.location={authority.issue('node').pem}\n" if protocol == "SASL_SSL" else ""
    with secured_node(tmp_path, protocol, more) as (node, address):
        make_user(node.address, "ada", "pencil")
        settings = {
            "bootstrap.servers": address, "security.protocol": protocol, "ssl.ca.location": str(authority.ca),
            "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "ada", "sasl.password": "pencil",
        }  # fmt: skip
        assert writes_and_reads(settings, "before") == b"hello"
        before_kib, held = resident_kib(node.pid), list[socket.socket]()
        port = int(address.rpartition(":")[2])
        for number in range(PEERS):
            peer = socket.create_connection(("127.0.0.1", port))
            with contextlib.suppress(OSError):
                peer.sendall(list(ATTACKS.values())[number % len(ATTACKS)])
            held.append(peer)
            if len(held) > HELD:
                held.pop(0).close()
            if number == PEERS // 2:
                assert writes_and_reads(settings, "among-them") == b"hello"
        assert resident_kib(node.pid) - before_kib < MOST_MORE_KIB
        assert len([line for line in node.log().splitlines() if "refused" in line]) < 20
        for peer in held:
            peer.close()
        assert writes_and_reads(settings, "after") == b"hello"
