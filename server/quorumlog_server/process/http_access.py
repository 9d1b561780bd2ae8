"""Who may see the pages of the HTTP port whole.

Whether a node is alive and ready is told to everybody, in one word. The reasons, and every other page, are for whoever
asks from the machine itself, shows a certificate, or logs in by `Basic` (RFC 7617); of the two that have a name the
cluster's rules ask Describe. Where no listener for clients asks who its clients are, this port does not either.

A page of a browser on the machine can make it ask here for whatever name that page has (DNS rebinding), and a proxy on
the machine asks for others: only who asks for a number or for `localhost`, and without a header by which proxies tell
for whom they ask, counts as the machine itself. A proxy that sends neither (nginx as it comes) is let in.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from quorumlog.security.host import is_loopback
from quorumlog.security.principal import Principal
from quorumlog_server.process.http_page import Page

if TYPE_CHECKING:
    from quorumlog.rpc.serving.logins import Logins

IN_A_WORD = ("/healthz", "/readyz")  # what everybody may know
_REALM = ("WWW-Authenticate", 'Basic realm="quorumlog", charset="UTF-8"')
_WORDS = {200: b"ok\n", 503: b"unavailable\n"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A request for a page. peer: its address, without a port. host: of the header; "" for none. certificate: DER; None
    if the peer has shown none. authorization: of all headers of this name. is_forwarded: a proxy says that it asks for
    somebody else."""

    path: str
    peer: str
    host: str = ""
    is_encrypted: bool = False
    certificate: bytes | None = None
    authorization: Sequence[str] = ()
    is_forwarded: bool = False


class Door(Protocol):
    """Two real ones: `OpenDoor` and `AskingDoor`."""

    async def refusal(self, asking: Asking) -> Page | None:
        """None: it may see the page. Of a page of IN_A_WORD 403 hides the reasons only."""


class OpenDoor:
    """Everybody may see everything."""

    async def refusal(self, asking: Asking) -> Page | None:
        return None


class AskingDoor:
    """principal_of: of a certificate; None: it is denied, or no rule gives it a name. may_see: whether the cluster's
    rules let a principal at an address see it. refused: is told of each login that failed, for the log: the address,
    the reason. logins: of `Basic`; None: nobody has a password here."""

    def __init__(
        self,
        *,
        principal_of: Callable[[bytes], Principal | None],
        may_see: Callable[[Principal, str], bool],
        refused: Callable[[str, str], None],
        logins: Logins | None,
    ) -> None:
        self._principal_of, self._may_see, self._refused, self._logins = principal_of, may_see, refused, logins

    async def refusal(self, asking: Asking) -> Page | None:
        if asking.authorization:
            return await self._of_login(self._logins, asking)
        if is_own_machine(asking):
            return None
        if asking.path in IN_A_WORD and asking.certificate is None:
            return Page(403, b"log in to hear more than a word\n")
        if asking.certificate is not None:
            return self._of_rules(self._principal_of(asking.certificate), asking.peer)
        if not asking.is_encrypted:
            text = (
                "ask from the machine itself, by its number or as localhost; from elsewhere this port asks for a "
                "login, and takes one over TLS only (metrics.security.protocol=SSL)\n"
            )
            return Page(403, text.encode())
        return _unknown(
            "log in by Basic as a user of the cluster, or show a certificate; the port asks for one with "
            "listener.name.metrics.ssl.client.auth=requested\n"
        )

    async def _of_login(self, logins: Logins | None, asking: Asking) -> Page | None:
        from quorumlog.rpc.serving.logins import NotLoggedIn, NotOpen

        if not asking.is_encrypted and not is_own_machine(asking):
            return Page(
                403, b"over plain HTTP others can read a password, so none counts: metrics.security.protocol=SSL\n"
            )
        if logins is None:
            return Page(403, b"no listener of this node takes passwords, so this port does not either\n")
        try:
            who = await logins.log_in(list(asking.authorization), asking.peer)
        except NotOpen as error:
            return Page(503, f"{error}\n".encode())
        except NotLoggedIn as error:
            self._refused(asking.peer, str(error))
            await asyncio.sleep(logins.delay_ms / 1000)
            return _unknown("authentication failed\n")
        return self._of_rules(who.principal, asking.peer)

    def _of_rules(self, principal: Principal | None, peer: str) -> Page | None:
        if principal is None:
            return Page(403, b"this certificate is denied, or ssl.principal.mapping.rules has no name for it\n")
        if self._may_see(principal, peer):
            return None
        return Page(403, f"{principal} has no right to Describe the cluster\n".encode())


def is_own_machine(asking: Asking) -> bool:
    """It asks from the node's machine, for a number or for localhost, and for nobody else."""
    own_host = not asking.host or _names_no_other(asking.host)
    return is_loopback(asking.peer) and own_host and not asking.is_forwarded


def in_a_word(page: Page) -> Page:
    """For whom the reasons are not."""
    return Page(page.status, _WORDS[200 if page.status == 200 else 503])


def _unknown(text: str) -> Page:
    return Page(401, text.encode(), headers=(_REALM,))


def _names_no_other(host: str) -> bool:
    """host: of the header, with or without a port."""
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    if name.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
