"""How many connections one address may have, beside the limits of all of them (`quorumlog.wire.limits`)."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.errors import ApiError
from quorumlog.live_settings import ADDRESSES, CONNECTIONS_OF_ADDRESS, IN_FORCE
from quorumlog.setting_types import MAX_INT
from quorumlog.settings.key import NodeKey, number, setting
from quorumlog.topic_config import parse_text


def _addresses(text: str) -> str:
    """Raises ValueError."""
    try:
        parse_text(IN_FORCE[ADDRESSES], text)
    except ApiError as error:
        raise ValueError(str(error)) from None
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    of_address: int = setting(number(CONNECTIONS_OF_ADDRESS, MAX_INT, 1, IN_FORCE[CONNECTIONS_OF_ADDRESS].doc))
    overrides: str = setting(NodeKey(name=ADDRESSES, parse=_addresses, default="", doc=IN_FORCE[ADDRESSES].doc))
