"""How many connections there may be: of a listener, and of one address to all of them; and how many in a second."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.errors import ApiError
from quorumlog.settings.config_key import ConfigKey, Kind, parse_text
from quorumlog.settings.key import NodeKey, number, setting
from quorumlog.settings.types import MAX_INT

CONNECTIONS, CONNECTIONS_OF_ADDRESS = "max.connections", "max.connections.per.ip"
ADDRESSES = "max.connections.per.ip.overrides"
CREATION_RATE = "max.connection.creation.rate"

OF_LISTENER = number(
    CONNECTIONS, 10_000, 1, "Connections per listener for clients; a further one is closed at once."
)  # the wire obeys it (`quorumlog.wire.protocol.limits`)
OVERRIDES = ConfigKey(
    name=ADDRESSES,
    kind=Kind.LIST,
    default="",
    pattern=r"[0-9a-zA-Z._%:-]+:[0-9]{1,9}",
    hint=" of HOST:CONNECTIONS, as in 10.0.0.7:100",
    doc="Other maxima than `max.connections.per.ip`, as HOST:CONNECTIONS,...; 0 lets nobody in. All addresses of a "
    "name have its maximum, each by itself.",
)


def _addresses(text: str) -> str:
    """Raises ValueError."""
    try:
        parse_text(OVERRIDES, text)
    except ApiError as error:
        raise ValueError(str(error)) from None
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    of_address: int = setting(
        number(
            CONNECTIONS_OF_ADDRESS,
            MAX_INT,
            1,
            "Connections from one address to all listeners for clients; a further one is closed at once.",
        )
    )
    creation_rate: int = setting(
        number(
            CREATION_RATE,
            MAX_INT,
            1,
            "Connections that are let in a second, of all listeners for clients; others wait for up to a second each.",
        )
    )
    overrides: str = setting(
        NodeKey(name=OVERRIDES.name, parse=_addresses, default=OVERRIDES.default, doc=OVERRIDES.doc)
    )
