"""How a listener of gRPC is protected, and who calls it: by a certificate, or by `authorization` metadata over TLS."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc

from quorumlog.proof.node_certificate import IsDenied, none_denied
from quorumlog.proof.refusal_log import RefusalLog, others
from quorumlog.rpc.caller import AUTHORIZATION, host_of
from quorumlog.rpc.serving.certified import Certified, certified
from quorumlog.rpc.serving.grpc_listener import check_grpc_listener
from quorumlog.rpc.serving.logins import LoggedIn, Logins, NotLoggedIn
from quorumlog.rpc.transport import Listener
from quorumlog.security import login
from quorumlog.security.login import OnLogin, tell_nobody
from quorumlog.security.principal import ANONYMOUS
from quorumlog.security.sasl.mechanism import OAUTHBEARER, PLAIN
from quorumlog.security.sasl.session import FAILED_DELAY_MS
from quorumlog.security.tls.mapping import parse_rules
from quorumlog.security.tls.settings import ClientAuth, ServerTls
from quorumlog.settings.security import DENIED_CERTIFICATES

if TYPE_CHECKING:
    from quorumlog.security.tls.material import Material

_log = logging.getLogger(__name__)
DENIED_POLL_S = 1.0  # a stream ends so long after its certificate was denied; the list is read every 10 s
SCHEMES = {"basic": PLAIN, "bearer": OAUTHBEARER}  # of HTTP, as mechanisms of SASL
MAX_CERTIFICATES = 1_024  # that are remembered, of one listener

Pairs = Iterable[tuple[str, str | bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSecurity:
    """Of one listener whose protocol has TLS. material: the newest generation: the same object until it is another one;
    it is asked at each connection, in a thread of gRPC's. logins: where the protocol has SASL. unix_ms: the wall
    clock. is_denied: whose certificates count no more. on_login: told of who calls, and of who may not, at each call
    and stream."""

    tls: ServerTls
    material: Callable[[], Material]
    unix_ms: Callable[[], int]
    logins: Logins | None = None
    is_denied: IsDenied = none_denied
    on_login: OnLogin = tell_nobody


def server_credentials(security: ServerSecurity) -> grpc.ServerCredentials:
    """Each connection gets the generation that is the newest when it comes."""
    required = security.tls.client_auth is ClientAuth.REQUIRED

    def configuration(material: Material) -> grpc.ServerCertificateConfiguration:
        roots = material.authorities if required else None
        return grpc.ssl_server_certificate_configuration([(material.key, material.chain)], root_certificates=roots)

    first = security.material()
    given = [first]  # the last one that gRPC has taken

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        newest = security.material()
        if newest is given[0]:
            return None
        given[0] = newest
        return configuration(newest)

    # None keeps the configuration, says gRPC's own documentation; its types do not
    return grpc.dynamic_ssl_server_credentials(configuration(first), fetch, required)  # type: ignore[arg-type]


class Admitted(NamedTuple):
    """certificate: what the peer has shown; None: nothing, or nobody asked."""

    who: LoggedIn
    certificate: Certified | None


IN_CLEAR = Admitted(LoggedIn(ANONYMOUS, None), None)


@dataclass
class Admission:
    """Of one listener. security: None: in clear."""

    listener: Listener
    security: ServerSecurity | None
    _certificates: dict[str, Certified] = field(default_factory=dict)  # by PEM, oldest first
    _refusals: RefusalLog = field(default_factory=RefusalLog)

    def __post_init__(self) -> None:
        check_grpc_listener(self.listener, self.security.tls if self.security is not None else None)
        has_logins = self.security is not None and self.security.logins is not None
        assert self.listener.security.tls == (self.security is not None), f"{self.listener}: half a configuration"
        assert self.listener.security.sasl == has_logins, f"{self.listener}: half a configuration"
        self._rules = parse_rules(self.security.tls.mapping_rules) if self.security is not None else None

    @property
    def delay_ms(self) -> int:
        logins = self.security.logins if self.security is not None else None
        return logins.delay_ms if logins is not None else FAILED_DELAY_MS

    async def admit(self, context: Any, metadata: Pairs) -> Admitted:
        """context: a servicer's. Raises NotLoggedIn, NotOpen."""
        if self.security is None:
            return IN_CLEAR
        certificate = self._certificate(context)
        if self._is_denied_client(certificate):
            raise NotLoggedIn(f"its certificate is denied ({DENIED_CERTIFICATES})")
        if self.security.logins is not None:
            shown = [value if isinstance(value, str) else "" for key, value in metadata if key == AUTHORIZATION]
            who = await self.security.logins.log_in(shown, host_of(context.peer()))
        elif certificate is None or self.listener.internal:
            who = LoggedIn(ANONYMOUS, None)
        elif certificate.principal is None:
            raise NotLoggedIn(f"{self.security.tls.prefix}ssl.principal.mapping.rules has no rule for its certificate")
        else:
            who = LoggedIn(certificate.principal, None)
        ends = [one for one in (who.expires_ms, certificate.not_after_ms if certificate else None) if one is not None]
        who = LoggedIn(who.principal, min(ends, default=None))
        if self._has_expired(who):
            raise NotLoggedIn("its credential has expired")
        if not self.listener.internal:
            name, host = self.listener.name, host_of(context.peer())
            self.security.on_login(login.done(name, host, self._mechanism(metadata), who.principal), "")
        return Admitted(who, certificate)

    def is_over(self, admitted: Admitted) -> bool:
        """What a client shows has expired, or is denied by now. Of a node it says only the former."""
        return self._has_expired(admitted.who) or self._is_denied_client(admitted.certificate)

    def _mechanism(self, metadata: Pairs) -> str:
        """What a caller logs in by; "" for what is none."""
        if self.security is None or self.security.logins is None:
            return login.CERTIFICATE
        shown = next((value for key, value in metadata if key == AUTHORIZATION and isinstance(value, str)), "")
        return SCHEMES.get(shown.partition(" ")[0].lower(), "")

    def _has_expired(self, who: LoggedIn) -> bool:
        return who.expires_ms is not None and self.security is not None and self.security.unix_ms() >= who.expires_ms

    def _is_denied_client(self, certificate: Certified | None) -> bool:
        """To a node the gate says so, with a code of its own."""
        return not self.listener.internal and self.is_denied(certificate)

    def is_denied(self, certificate: Certified | None) -> bool:
        if self.security is None or certificate is None:
            return False
        return self.security.is_denied(certificate.fingerprint)

    def ends_s(self, who: LoggedIn, now_s: float) -> float | None:
        """When what this one shows ends, in the loop's time."""
        if who.expires_ms is None or self.security is None:
            return None
        return now_s + (who.expires_ms - self.security.unix_ms()) / 1000

    def refused(self, where: str, metadata: Pairs, reason: str, now_s: float) -> None:
        """Log it, not too often."""
        if self.security is not None and not self.listener.internal:
            self.security.on_login(login.failed(self.listener.name, host_of(where), self._mechanism(metadata)), reason)
        left_out = self._refusals.due(where.rpartition(":")[0], now_s)
        if left_out is not None:
            name, address = self.listener.name, self.listener.address
            _log.warning("refused %s at %s %s: %s%s", where, name, address, reason, others(left_out))

    def close(self) -> None:
        if self.security is not None and self.security.logins is not None:
            self.security.logins.close()

    def _certificate(self, context: Any) -> Certified | None:
        found = context.auth_context().get("x509_pem_cert")
        if not found or self._rules is None:
            return None
        pem = found[0].decode("ascii")
        known = self._certificates.get(pem)
        if known is None:
            if len(self._certificates) >= MAX_CERTIFICATES:
                del self._certificates[next(iter(self._certificates))]
            known = self._certificates[pem] = certified(ssl.PEM_cert_to_DER_cert(pem), self._rules)
        return known
