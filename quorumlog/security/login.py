"""A login that has ended, well or not, as listeners tell it to whoever keeps a record of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from quorumlog.security.principal import Principal

CERTIFICATE = "certificate"  # in the place of a mechanism, where a client is known by what it shows in the handshake

MAX_PRINCIPAL_CHARACTERS = 200  # of a login


class Login(NamedTuple):
    """mechanism: of SASL, or CERTIFICATE; "" if none was agreed. name: who from where, which many may differ by."""

    listener: str
    mechanism: str
    failed: bool
    name: str

    @property
    def principal(self) -> str:
        """Empty for one who has not shown who it is."""
        return self.name.rpartition(" ")[0]

    @property
    def host(self) -> str:
        return self.name.rpartition(" ")[2]


OnLogin = Callable[[Login, str], None]  # reason: why it failed, with texts that a stranger chose


def done(listener: str, host: str, mechanism: str, principal: Principal) -> Login:
    who = str(principal)
    if len(who) > MAX_PRINCIPAL_CHARACTERS:  # the audit log cuts what is longer, and would cut off the host
        who = f"{who[: MAX_PRINCIPAL_CHARACTERS - 3]}..."
    return Login(listener, mechanism, False, f"{who} {host}")


def failed(listener: str, host: str, mechanism: str) -> Login:
    return Login(listener, mechanism, True, f" {host}")


def tell_nobody(_login: Login, _reason: str) -> None: ...
