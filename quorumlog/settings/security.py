"""Settings of listeners' security: TLS, logins, and those who have not logged in yet.

Each key of `OF_LISTENER` counts for all listeners, and as `listener.name.NAME.KEY` (the name in lower case) for one,
where that wins. What a listener's TLS makes of its keys is in `quorumlog.security.tls.settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quorumlog.settings.config_key import MAX_LONG
from quorumlog.settings.key import NodeKey, flag, maybe, names, number, parse_list, setting, text, word
from quorumlog.settings.types import MAX_INT

LISTENER_PREFIX = "listener.name."
ANONYMOUS_LISTENERS = "allow.anonymous.listeners"
HTTP_LISTENER = "METRICS"  # what metrics.port is called where keys name a listener
DENIED_CERTIFICATES = "quorumlog.denied.certificates"
MECHANISMS = "sasl.enabled.mechanisms"
_PEM = "PEM, the one type that is read; `quorumlog tls import` makes it of another."


def _secret(name: str, doc: str) -> NodeKey:
    return NodeKey(name=name, parse=text, default=None, optional=True, doc=doc, secret=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerTlsSettings:
    keystore_type: str = setting(word("ssl.keystore.type", "PEM", f"Type of `ssl.keystore.location`: {_PEM}"))
    keystore: str | None = setting(
        maybe("ssl.keystore.location", text, "PEM file with a listener's private key and its certificate chain, 0600.")
    )
    keystore_password: str | None = setting(
        _secret("ssl.keystore.password", "Refused: a PEM file has no password of its own.")
    )
    key: str | None = setting(_secret("ssl.keystore.key", "The private key itself, in PEM, instead of a file."))
    chain: str | None = setting(
        _secret("ssl.keystore.certificate.chain", "The certificate chain of `ssl.keystore.key`, in PEM.")
    )
    key_password: str | None = setting(_secret("ssl.key.password", "Password of an encrypted private key."))
    truststore_type: str = setting(word("ssl.truststore.type", "PEM", f"Type of `ssl.truststore.location`: {_PEM}"))
    truststore: str | None = setting(
        maybe("ssl.truststore.location", text, "PEM file with the authorities that may issue clients' certificates.")
    )
    truststore_password: str | None = setting(
        _secret("ssl.truststore.password", "Refused: a PEM file has no password of its own.")
    )
    trusted: str | None = setting(_secret("ssl.truststore.certificates", "The authorities themselves, in PEM."))
    client_auth: str = setting(
        word(
            "ssl.client.auth",
            "none",
            "Whether clients show certificates: none; requested: who shows none is anonymous; required.",
            ("none", "requested", "required"),
        )
    )
    protocols: tuple[str, ...] = setting(
        names("ssl.enabled.protocols", "TLSv1.2,TLSv1.3", "Versions of TLS, of these two; older ones are refused.")
    )
    ciphers: tuple[str, ...] = setting(
        names("ssl.cipher.suites", "", "Suites of TLSv1.2 by their IANA names; empty: OpenSSL's own choice.")
    )
    mapping_rules: str = setting(
        word("ssl.principal.mapping.rules", "DEFAULT", "From the name in a client's certificate to its principal.")
    )
    dn_changes: bool = setting(
        flag("ssl.allow.dn.changes", False, "A certificate that is read again may have another subject.")
    )
    san_changes: bool = setting(
        flag("ssl.allow.san.changes", False, "A certificate that is read again may have other alternative names.")
    )
    strict: bool = setting(
        flag(
            "ssl.verify.strict",
            False,
            "Clients' certificates need all that RFC 5280 asks for, on each version of Python. Not in Kafka.",
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """Which bearer tokens log in by OAUTHBEARER."""

    jwks_url: str | None = setting(
        maybe(
            "sasl.oauthbearer.jwks.endpoint.url",
            text,
            "Where the keys that sign tokens are: https://... or file:///PATH. It must be in "
            "sasl.oauthbearer.allowed.urls.",
        )
    )
    allowed_urls: tuple[str, ...] = setting(
        names(
            "sasl.oauthbearer.allowed.urls",
            "",
            "The URLs from which keys may come, to the letter. In Kafka a property of the Java process.",
        )
    )
    issuer: str | None = setting(
        maybe("sasl.oauthbearer.expected.issuer", text, "The `iss` that a token must have; OAUTHBEARER needs it.")
    )
    audiences: tuple[str, ...] = setting(
        names(
            "sasl.oauthbearer.expected.audience",
            "",
            "Of these a token must have one in its `aud`; OAUTHBEARER needs it.",
        )
    )
    subject_claim: str = setting(
        word("sasl.oauthbearer.sub.claim.name", "sub", "The claim of a token that names the user.")
    )
    skew_s: int = setting(
        number(
            "sasl.oauthbearer.clock.skew.seconds",
            30,
            0,
            "A token may have been issued so much later by this machine's clock.",
            3_600,
        )
    )
    refresh_ms: int = setting(
        number(
            "sasl.oauthbearer.jwks.endpoint.refresh.ms",
            3_600_000,
            1_000,
            "The keys that sign tokens are fetched again after this long.",
            MAX_LONG,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSettings:
    """How clients log in at a listener with SASL. Times in ms, sizes in bytes."""

    mechanisms: tuple[str, ...] = setting(
        names(MECHANISMS, "SCRAM-SHA-512", "Mechanisms of logins: SCRAM-SHA-512, SCRAM-SHA-256, PLAIN, OAUTHBEARER.")
    )
    max_reauth_ms: int = setting(
        number(
            "connections.max.reauth.ms",
            0,
            0,
            "A client has to log in again on its connection after this long; 0: never, unless its credential ends.",
            MAX_INT,
        )
    )
    failed_delay_ms: int = setting(
        number(
            "connection.failed.authentication.delay.ms",
            100,
            0,
            "Pause before a failed login is answered and its connection closed.",
            60_000,
        )
    )
    max_receive_bytes: int = setting(
        number("sasl.server.max.receive.size", 524_288, 1_024, "Largest request before the login, in bytes.")
    )
    timeout_ms: int = setting(
        number(
            "authentication.timeout.ms",
            10_000,
            100,
            "Time for a TLS handshake, and again for a login. Not in Kafka.",
            600_000,
        )
    )
    tokens: TokenSettings = field(default_factory=TokenSettings)


OF_LISTENER = (ListenerTlsSettings, LoginSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrangerLimits:
    """Of peers that have not shown yet who they are. most_of_address: the rest of `most` is for others. max_bytes: of
    what all of them send, together."""

    most: int = setting(
        number(
            "max.unauthenticated.connections",
            1_000,
            1,
            "Connections to listeners with TLS or SASL that have not logged in yet; above that the oldest of them is "
            "closed. At most 64 are of one address. Not in Kafka.",
        )
    )
    most_of_address: int = 64
    max_bytes: int = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymousSettings:
    listeners: tuple[str, ...] | None = setting(
        maybe(
            ANONYMOUS_LISTENERS,
            parse_list,
            "Names of listeners for clients that serve everybody although others ask who a client is; METRICS is the "
            "port of metrics. Not in Kafka.",
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeniedSettings:
    path: str | None = setting(
        maybe(
            DENIED_CERTIFICATES,
            text,
            "File with the SHA-256 fingerprints of certificates, of clients and of nodes, that count no more, one at "
            "the beginning of each line, as `quorumlog tls revoke` writes it. It is read again when it changes, and "
            "open connections of such a certificate end. Not in Kafka.",
        )
    )


def with_listener(values: Mapping[str, str], name: str, keys: Mapping[str, NodeKey]) -> dict[str, tuple[str, str]]:
    """The keys that are set for a listener, each with the name under which it is set and its text."""
    prefix = f"{LISTENER_PREFIX}{name.lower()}."
    return {
        key: (full, values[full])
        for key in keys
        for full in ((prefix + key) if prefix + key in values else key,)
        if full in values
    }
