"""The console on a node's own listener (`console.listener`): a thread and a loop of its own, in the node's process.

It is a client of the cluster as any other, so the node's loop serves it and does nothing else for it. What it needs is
loaded only where the setting is set.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorumlog.client.errors import ConfigError as BadOption
from quorumlog.rpc.transport import Address
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.config.properties import ConfigError

if TYPE_CHECKING:
    from quorumlog_console.options import ConsoleOptions
    from quorumlog_console.serving import ConsoleThread

KEY, FILE_KEY = "console.listener", "console.client.config"
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_PASSWORDS = ("PLAIN", "SCRAM")


class NodeConsole:
    """From `start` to `stop`. Of a node that has one: the setting is set."""

    def __init__(self, config: NodeConfig) -> None:
        self._config = config
        self._thread: ConsoleThread | None = None

    def start(self, addresses: Mapping[str, Address]) -> dict[str, Address]:
        """addresses: of the node's listeners. Returns the console's, by name. Raises ConfigError, OSError."""
        from quorumlog_console.starting import host_and_port

        try:
            host, port = host_and_port(self._config.process.console_listener)
        except ValueError as error:
            raise ConfigError(f"{KEY}: {error}") from None
        options = console_options(self._config, addresses)
        from quorumlog_console.serving import ConsoleThread, address_of, listen

        try:
            made = listen(host, port)
        except OSError as error:
            in_use = error.errno == errno.EADDRINUSE
            why = f"the port is in use; stop its user, or set another {KEY}" if in_use else error.strerror
            raise OSError(error.errno, f"cannot listen at {host}:{port} for the console: {why}") from error
        address = address_of(made)
        self._thread = ConsoleThread(options)
        self._thread.start(made)
        return {"console": address}

    async def stop(self) -> None:
        if self._thread is not None:
            await asyncio.to_thread(self._thread.stop)


def console_options(config: NodeConfig, addresses: Mapping[str, Address]) -> ConsoleOptions:
    """Raises ConfigError."""
    from quorumlog_console.starting import missing_package

    missing = missing_package()
    if missing:
        raise ConfigError(f"{KEY} needs the extra ui ({missing} is missing): pip install 'quorumlog[ui]'")
    from quorumlog_console.door import OF_A_PERSON
    from quorumlog_console.options import ConsoleOptions, Login

    file = config.process.console_client_config
    client: dict[str, Any] = {"client_id": "quorumlog-console", "default_api_timeout_ms": 10_000}
    client |= _listener(config, addresses, has_file=bool(file))
    if file:
        client |= _options_of(Path(file))
    client = {name: value for name, value in client.items() if name not in OF_A_PERSON}
    return ConsoleOptions(client=client, login=Login.ALWAYS if _asks(config) else Login.NEVER)


def _listener(config: NodeConfig, addresses: Mapping[str, Address], *, has_file: bool) -> dict[str, Any]:
    """How the console reaches its own node: by a listener that takes passwords where any listener asks who clients are,
    else by one that asks nothing."""
    own = [one for one in config.listeners if not one.internal and one.name in addresses]
    if _asks(config):
        usable = [one for one in own if one.security.sasl and _takes_passwords(config, one.name)]
    else:
        usable = [one for one in own if not one.security.sasl and not one.security.tls]
    clear = [one for one in usable if not one.security.tls]
    chosen = next(iter(clear or (usable if has_file else [])), None)
    if chosen is None and has_file:
        return {}
    if chosen is None:
        wanted = "passwords" if _asks(config) else "clients in clear"
        raise ConfigError(
            f"{KEY}: no listener takes {wanted} without certificates: name a file of client options in {FILE_KEY}, "
            "with bootstrap.servers, security.protocol and ssl.truststore.location"
        )
    address = addresses[chosen.name]
    host = _ANY_ADDRESS.get(address.host, address.host)
    return {
        "bootstrap_servers": f"[{host}]:{address.port}" if ":" in host else f"{host}:{address.port}",
        "security_protocol": chosen.security.value,
    }


def _asks(config: NodeConfig) -> bool:
    """Whether a listener for clients asks who they are. `allow.anonymous.listeners` excepts no console."""
    return any(config.listener_security[one.name].authenticates for one in config.client_listeners)


def _takes_passwords(config: NodeConfig, name: str) -> bool:
    security = config.listener_security.get(name)
    logins = None if security is None else security.logins
    return logins is not None and any(one.startswith(_PASSWORDS) for one in logins.mechanisms)


def _options_of(path: Path) -> dict[str, Any]:
    """Raises ConfigError."""
    from quorumlog.client.security.names import canonical
    from quorumlog_storage.files.properties import BadProperties, parse_properties

    try:
        return {canonical(name): value for name, value in parse_properties(str(path), path.read_bytes()).items()}
    except (OSError, BadProperties, BadOption) as error:
        raise ConfigError(f"{FILE_KEY}: {path} cannot be used: {error}") from error
