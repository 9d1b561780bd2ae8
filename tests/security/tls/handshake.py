"""Two ends of TLS in memory, joined by their bytes."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any


class Ends:
    """A server and a client, of two contexts."""

    def __init__(
        self, server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost", session: Any = None
    ) -> None:
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = server.wrap_bio(to_server, to_client, server_side=True)
        self.client = client.wrap_bio(to_client, to_server, server_hostname=host, session=session)

    def shake(self) -> None:
        """Raises the error of the end that fails first; the client's after the server's alert has come."""
        ends = [self.client, self.server]
        waiting: list[Callable[[], Any]] = [end.do_handshake for end in ends]
        for _ in range(10):
            waiting = [step for step in waiting if not _done(step)]
            if not waiting:
                return
        raise AssertionError("the handshake does not end")

    def exchange(self) -> bytes:
        """What the client reads of a byte of the server's, behind tickets; raises what its first read raises."""
        self.server.write(b"x")
        return self.client.read(1)


def _done(step: Callable[[], Any]) -> bool:
    try:
        step()
    except ssl.SSLWantReadError:
        return False
    return True
