"""How each listener is protected, and the refusals of what would leave it open by mistake.

Half a configuration never means anonymous. Errors are a key of TLS or of logins that reaches no listener, a protocol
for a listener that there is not, and a listener for clients that asks nobody beside one that does. No file is read.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from quorumlog.rpc.transport import Address, Listener
from quorumlog.security.host import is_near
from quorumlog.security.protocol import SecurityProtocol
from quorumlog.settings.key import NodeKey, keys_of, part_of
from quorumlog.settings.node_auth import NODE_AUTH
from quorumlog.settings.process import ProcessSettings
from quorumlog.settings.security import (
    ANONYMOUS_LISTENERS,
    HTTP_LISTENER,
    LISTENER_PREFIX,
    MECHANISMS,
    AnonymousSettings,
    ListenerTlsSettings,
    LoginSettings,
    TokenSettings,
    with_listener,
)
from quorumlog_server.config.properties import ConfigError
from quorumlog_server.config.values import read_value

if TYPE_CHECKING:
    from quorumlog.security.sasl.token import TokenRules
    from quorumlog.security.tls.settings import ServerTls

PROTOCOL_MAP = "listener.security.protocol.map"
TLS_KEYS: Mapping[str, NodeKey] = {key.name: key for key in keys_of(ListenerTlsSettings)}
LOGIN_KEYS: Mapping[str, NodeKey] = {key.name: key for key in keys_of(LoginSettings)}
KEYS: Mapping[str, NodeKey] = {**TLS_KEYS, **LOGIN_KEYS}
SERVED_MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER")
_IN_CLEAR = {"PLAIN": "passwords", "OAUTHBEARER": "tokens"}  # what a mechanism shows to whoever reads the network
_SOURCE_KEYS = ("sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.allowed.urls")
_WITHOUT_USE = ("ssl.keystore.location", "ssl.keystore.key", "ssl.client.auth", MECHANISMS)  # unless a listener has it


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurity:
    """tls, logins: None: the listener's protocol has it not. timeout_ms: of a handshake, and again of a login."""

    tls: ServerTls | None = None
    logins: LoginSettings | None = None
    timeout_ms: int = field(default=LoginSettings().timeout_ms)

    @property
    def authenticates(self) -> bool:
        """Nobody is served without having shown who it is."""
        return self.logins is not None or (self.tls is not None and self.tls.client_auth.value == "required")

    @property
    def sees_certificates(self) -> bool:
        """Whoever connects may show one, or has to."""
        return self.tls is not None and self.tls.client_auth.value != "none"

    @property
    def tokens(self) -> TokenSettings | None:
        """None: nobody logs in by a token here."""
        logins = self.logins
        return logins.tokens if logins is not None and "OAUTHBEARER" in logins.mechanisms else None


# --- protocols


def protocols(entries: Sequence[str], listeners: Iterable[str]) -> dict[str, SecurityProtocol]:
    """Of each listener. entries: NAME:PROTOCOL. Raises ConfigError."""
    known = {one.value for one in SecurityProtocol}
    by_name = {name: name for name in known}
    mentioned = set()
    for entry in entries:
        name, found, protocol = entry.upper().partition(":")
        if not found:
            raise ConfigError(f"{PROTOCOL_MAP}: {entry!r} is not NAME:PROTOCOL")
        if protocol not in known:
            raise ConfigError(f"{PROTOCOL_MAP}: {name}:{protocol}: write one of {', '.join(sorted(known))}")
        if name in mentioned and by_name[name] != protocol:
            raise ConfigError(f"{PROTOCOL_MAP}: {name} is given twice; remove one of them")
        mentioned.add(name)
        by_name[name] = protocol
    names = list(listeners)
    for name in mentioned:
        if name not in names and by_name[name] not in (name, SecurityProtocol.PLAINTEXT.value):
            raise ConfigError(
                f"{PROTOCOL_MAP}: {name}:{by_name[name]}: no listener has this name, so it would protect none of "
                f"{', '.join(names)}; correct the name, or remove it"
            )
    return {name: SecurityProtocol(by_name.get(name, SecurityProtocol.PLAINTEXT.value)) for name in names}


# --- keys of one listener


def listener_key(key: str) -> NodeKey | None:
    """Of `listener.name.NAME.KEY`, whatever the name is; None: it is none of security."""
    if not key.startswith(LISTENER_PREFIX):
        return None
    fitting = [name for name in KEYS if key.endswith("." + name)]
    return KEYS[max(fitting, key=len)] if fitting else None


def check_listener_keys(values: Mapping[str, str], listeners: Iterable[str]) -> None:
    """Raises ConfigError for a key of security that names no listener."""
    names = [name.lower() for name in listeners]
    for key in values:
        found = listener_key(key)
        if found is None:
            continue
        name = key.removeprefix(LISTENER_PREFIX).removesuffix("." + found.name)
        if name not in names:
            nearest = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(names)}"
            raise ConfigError(f"{key}: no listener has the name {name} (in lower case); {hint}")


# --- the whole


def securities(
    values: Mapping[str, str], listeners: Sequence[Listener], http: Listener | None, where: str
) -> dict[str, ListenerSecurity]:
    """By the names of the listeners. http: what `http_listener` says. Raises ConfigError."""
    if http is not None and any(one.name == http.name for one in listeners):
        raise ConfigError(f"listeners: {http.name} is the name of the port of metrics; give the listener another one")
    every = [*listeners, *([http] if http is not None else [])]
    check_listener_keys(values, [one.name for one in every])
    found = {listener.name: _security(values, listener, where) for listener in every}
    _check_use(values, every, where)
    _check_wires(listeners, found)
    _check_mixture(values, listeners, http, found, where)
    return found


def http_listener(process: ProcessSettings) -> Listener | None:
    """The port of metrics, as far as it is a listener like others. None: there is none, or it is in clear."""
    if process.metrics_port is None or process.metrics_protocol != SecurityProtocol.SSL.value:
        return None
    address = Address(process.metrics_host, process.metrics_port)
    return Listener(name=HTTP_LISTENER, address=address, internal=False, security=SecurityProtocol.SSL)


def http_warnings(process: ProcessSettings, asks: bool) -> list[str]:
    """Of a port of metrics that other machines reach."""
    if process.metrics_port is None or is_near(process.metrics_host):
        return []
    said = f"metrics.host={process.metrics_host}: other machines reach the port of metrics, "
    if not asks:
        return [f"{said}unauthenticated"]
    if process.metrics_protocol != SecurityProtocol.SSL.value:
        return [f"{said}and it takes a login over TLS only: set metrics.security.protocol=SSL"]
    return []


def asks_at_http(
    values: Mapping[str, str], listeners: Sequence[Listener], found: Mapping[str, ListenerSecurity]
) -> bool:
    """Whether the port of metrics asks who somebody is, as a listener for clients does; the file may except it."""
    named = {name.upper() for name in _anonymous(values, "")}
    return HTTP_LISTENER not in named and any(found[one.name].authenticates for one in listeners if not one.internal)


def warnings_of(listeners: Sequence[Listener], found: Mapping[str, ListenerSecurity]) -> list[str]:
    warnings = []
    for listener in listeners:
        if is_near(listener.address.host):
            continue
        said = f"{listener.name} listens at {listener.address}: other machines reach it, "
        cure = f"{PROTOCOL_MAP}={listener.name}"
        if listener.internal and not listener.security.tls:
            warnings.append(
                f"{said}unencrypted: nodes prove the cluster's secret there, and what they send can be read; write "
                f"{cure}:SSL and {NODE_AUTH}=both, and {NODE_AUTH}=mtls once all nodes have it"
            )
        elif not listener.internal and not found[listener.name].authenticates:
            warnings.append(f"{said}unauthenticated; write {cure}:SASL_SSL where clients are to log in")
        elif not listener.security.tls:
            warnings.append(f"{said}unencrypted; write {cure}:SASL_SSL")
    return warnings


def _security(values: Mapping[str, str], listener: Listener, where: str) -> ListenerSecurity:
    given = with_listener(values, listener.name, KEYS)
    protocol = listener.security
    for key, (full, _) in given.items():
        if full != key and not (protocol.tls if key in TLS_KEYS else protocol.sasl or _is_common(key, protocol)):
            wanted = "SSL or SASL_SSL" if key in TLS_KEYS else "SASL_SSL or SASL_PLAINTEXT"
            raise ConfigError(
                f"{where}: {full} is set, but {listener.name} is {protocol.value}, which does not read it: write "
                f"{PROTOCOL_MAP}={listener.name}:{wanted}, or remove it"
            )
    logins = _logins(given, where)
    if protocol.sasl:
        _check_logins(listener, logins, given)
    return ListenerSecurity(
        tls=_tls(given, listener) if protocol.tls else None,
        logins=logins if protocol.sasl else None,
        timeout_ms=logins.timeout_ms,
    )


def _is_common(key: str, protocol: SecurityProtocol) -> bool:
    return key == "authentication.timeout.ms" and protocol.tls


def _tls(given: Mapping[str, tuple[str, str]], listener: Listener) -> ServerTls:
    from quorumlog.security.tls.errors import BadTls  # a node without TLS loads none of it
    from quorumlog.security.tls.settings import server_tls

    own = any(full != key for key, (full, _) in given.items() if key in TLS_KEYS)
    prefix = f"{LISTENER_PREFIX}{listener.name.lower()}." if own else ""
    try:
        return server_tls({key: text for key, (_, text) in given.items() if key in TLS_KEYS}, prefix)
    except BadTls as error:
        raise ConfigError(f"{listener.name}: {error}") from None


def _logins(given: Mapping[str, tuple[str, str]], where: str) -> LoginSettings:
    read = {}
    for name, key in LOGIN_KEYS.items():
        full, text = given.get(name, (name, key.default))
        read[name] = read_value(replace(key, name=full), {full: text or ""}, where)
    return part_of(LoginSettings, read)


def _check_logins(listener: Listener, logins: LoginSettings, given: Mapping[str, tuple[str, str]]) -> None:
    key = given.get(MECHANISMS, (MECHANISMS, ""))[0]
    if listener.internal:
        raise ConfigError(
            f"{PROTOCOL_MAP}: {listener.name}:{listener.security.value}: nodes prove themselves by the cluster's "
            f"secret and not by SASL; write {listener.name}:PLAINTEXT or {listener.name}:SSL"
        )
    if not logins.mechanisms:
        raise ConfigError(f"{key} is empty, and {listener.name} lets clients in by SASL: name SCRAM-SHA-512")
    for mechanism in logins.mechanisms:
        if mechanism == "GSSAPI":
            raise ConfigError(f"{key}: GSSAPI: Kerberos is not supported; write SCRAM-SHA-512")
        if mechanism not in SERVED_MECHANISMS:
            raise ConfigError(f"{key}: {mechanism[:40]!r} is not served; there are {', '.join(SERVED_MECHANISMS)}")
    for mechanism, shown in _IN_CLEAR.items():
        if mechanism in logins.mechanisms and not listener.security.tls and not is_near(listener.address.host):
            raise ConfigError(
                f"{key}: {mechanism} shows {shown} to whoever reads the network, and {listener.name} at "
                f"{listener.address} has no TLS: write {PROTOCOL_MAP}={listener.name}:SASL_SSL, or SCRAM-SHA-512 "
                f"instead of {mechanism}"
            )
    if "OAUTHBEARER" in logins.mechanisms:
        _check_tokens(listener, logins.tokens)


def _check_tokens(listener: Listener, tokens: TokenSettings) -> None:
    from quorumlog.security.sasl.jwks import check_source
    from quorumlog.security.sasl.token import check_installed

    try:
        check_installed()
        rules_of(tokens)
        check_source(tokens.jwks_url or "", tokens.allowed_urls, *_SOURCE_KEYS)
    except ValueError as error:
        raise ConfigError(f"{listener.name}: {error}") from None


def rules_of(tokens: TokenSettings) -> TokenRules:
    """Raises ValueError."""
    from quorumlog.security.sasl.token import TokenRules

    return TokenRules(
        issuer=tokens.issuer or "",
        audiences=tokens.audiences,
        subject_claim=tokens.subject_claim,
        skew_ms=tokens.skew_s * 1000,
    )


def _check_use(values: Mapping[str, str], listeners: Sequence[Listener], where: str) -> None:
    """A key for all listeners that none of them reads is a listener that was forgotten."""
    for key in _WITHOUT_USE:
        text = values.get(key, "").strip()
        if not text or text.lower() == (KEYS[key].default or "").lower():
            continue
        is_read = any(one.security.tls if key in TLS_KEYS else one.security.sasl for one in listeners)
        if not is_read:
            wanted = "SSL" if key in TLS_KEYS else "SASL_SSL"
            raise ConfigError(
                f"{where}: {key} is set, but no listener has {'TLS' if key in TLS_KEYS else 'SASL'}, so everybody is "
                f"served unasked: write {PROTOCOL_MAP}={listeners[0].name}:{wanted}, or remove it"
            )


def _check_wires(listeners: Sequence[Listener], found: Mapping[str, ListenerSecurity]) -> None:
    """gRPC cannot do all that the lane does."""
    for one in listeners:
        if one.lane or one.internal or one.security is SecurityProtocol.PLAINTEXT:
            continue
        from quorumlog.rpc.serving.grpc_listener import check_grpc_listener
        from quorumlog.security.tls.errors import BadTls

        try:
            check_grpc_listener(one, found[one.name].tls)
        except BadTls as error:
            raise ConfigError(str(error)) from None


def _anonymous(values: Mapping[str, str], where: str) -> tuple[str, ...]:
    return read_value(next(iter(keys_of(AnonymousSettings))), values, where) or ()


def _check_mixture(
    values: Mapping[str, str],
    listeners: Sequence[Listener],
    http: Listener | None,
    found: Mapping[str, ListenerSecurity],
    where: str,
) -> None:
    """One listener for clients asks who they are, and another serves everybody: only where it is said so."""
    key = ANONYMOUS_LISTENERS
    anonymous = {name.upper() for name in _anonymous(values, where)}
    if HTTP_LISTENER in anonymous and http is not None and found[http.name].authenticates:
        raise ConfigError(f"{key}: {http.name} asks for certificates; remove it from the list")
    clients = [one for one in listeners if not one.internal]
    for name in anonymous - {HTTP_LISTENER}:
        if name not in [one.name for one in clients]:
            raise ConfigError(f"{key}: no listener for clients is called {name}; correct the name, or remove it")
        if found[name].authenticates:
            raise ConfigError(f"{key}: {name} asks who its clients are; remove it from the list")
    asking = [one.name for one in clients if found[one.name].authenticates]
    for one in clients:
        if asking and not found[one.name].authenticates and one.name not in anonymous:
            raise ConfigError(
                f"listeners: {asking[0]} asks its clients who they are, and {one.name} serves everybody: protect "
                f"{one.name} too, take it away, or write {key}={one.name} if that is meant"
            )
