"""The console on a socket: uvicorn, on a thread and a loop of its own, or in the foreground of a command."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import threading

import uvicorn

from quorumlog.rpc.transport import Address
from quorumlog_console.app import make_app
from quorumlog_console.connections import BoundedConnection
from quorumlog_console.options import ConsoleOptions

_log = logging.getLogger("quorumlog.console")
BACKLOG = 128
KEEP_ALIVE_S = 15
STOP_S = 2  # for answers under way; a live tail ends with the console
MAX_HEAD_BYTES = 65_536  # the place where a search of a topic of a thousand partitions goes on has 30 KB
SWITCH_S = 0.0005


def listen(host: str, port: int) -> socket.socket:
    """port 0: any free one. Raises OSError."""
    family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind, number)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def address_of(made: socket.socket) -> Address:
    name = made.getsockname()
    return Address(name[0], name[1])


def url_of(address: Address, options: ConsoleOptions) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{'https' if options.certificate else 'http'}://{host}:{address.port}/"


def server(options: ConsoleOptions) -> uvicorn.Server:
    """Headers of proxies are not believed: whoever sends them could say to be another machine."""
    return uvicorn.Server(
        uvicorn.Config(
            make_app(options),
            http=BoundedConnection,
            ws="none",
            lifespan="on",
            loop="asyncio",
            log_config=None,
            log_level="error",  # what is no request would be a line each, and strangers would fill the node's log
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=options.limits.connections + 1,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=STOP_S,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
            ssl_certfile=options.certificate or None,
            ssl_keyfile=options.key or None,
        )
    )


class ConsoleThread:
    """From `start` to `stop`. It shares nothing with other threads but the socket and the interpreter, which it gives
    away every SWITCH_S, so that another loop in the process does not wait for long.
    """

    def __init__(self, options: ConsoleOptions) -> None:
        self._server = server(options)
        self._thread: threading.Thread | None = None

    def start(self, made: socket.socket) -> None:
        sys.setswitchinterval(SWITCH_S)
        self._thread = threading.Thread(target=self._run, args=(made,), name="console", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = STOP_S + 3) -> None:
        """Waits until it has ended. A thread that hangs ends with the process."""
        if self._thread is not None:
            self._server.should_exit = True
            self._thread.join(timeout_s)
            self._thread = None

    def _run(self, made: socket.socket) -> None:
        try:
            asyncio.run(self._server.serve(sockets=[made]))
        except Exception:  # in a thread of its own, beside a node that must not end for it
            _log.exception("the console has ended; the node goes on")
        finally:
            made.close()
