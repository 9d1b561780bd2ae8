"""What an operator says about TLS, under Kafka's names (KIP-651), for a listener or for a client.

Only PEM is read. `server_tls` and `client_tls` make the settings of texts and refuse what cannot work as it is said,
so that half a configuration never means a weaker one. They read no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypedDict

from quorumlog.security.tls.ciphers import openssl_ciphers
from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.mapping import DEFAULT, BadRules, parse_rules

PROTOCOLS = ("TLSv1.2", "TLSv1.3")
_OLDER = ("SSL", "SSLv2", "SSLv2Hello", "SSLv3", "TLS", "TLSv1", "TLSv1.1")

KEYSTORE_TYPE, KEYSTORE = "ssl.keystore.type", "ssl.keystore.location"
KEYSTORE_PASSWORD, TRUSTSTORE_PASSWORD = "ssl.keystore.password", "ssl.truststore.password"
KEY, CHAIN, KEY_PASSWORD = "ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password"
TRUSTSTORE_TYPE, TRUSTSTORE, TRUSTED = "ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.certificates"
CLIENT_AUTH, ENABLED_PROTOCOLS, CIPHER_SUITES = "ssl.client.auth", "ssl.enabled.protocols", "ssl.cipher.suites"
MAPPING_RULES, ENDPOINT = "ssl.principal.mapping.rules", "ssl.endpoint.identification.algorithm"
DN_CHANGES, SAN_CHANGES = "ssl.allow.dn.changes", "ssl.allow.san.changes"
STRICT = "ssl.verify.strict"  # ours


class ClientAuth(Enum):
    """Whether a listener asks for a certificate, and closes a connection without one."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """What both sides have. keystore: a file with the key and its chain; or both as texts. truststore: a file with
    authorities; or a text. prefix: of each key in messages, as in `listener.name.client.`.

    strict: certificates of the other side have all that RFC 5280 asks of them. Python has decided that by its version
    (from 3.13 on); here it is the same on each.
    """

    keystore_location: str | None = None
    keystore_key: str | None = field(default=None, repr=False)
    keystore_chain: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    truststore_location: str | None = None
    truststore_certificates: str | None = field(default=None, repr=False)
    protocols: tuple[str, ...] = PROTOCOLS
    ciphers: str = ""  # as OpenSSL names them; empty: its own choice
    strict: bool = False
    prefix: str = ""

    @property
    def has_key(self) -> bool:
        return self.keystore_location is not None or self.keystore_key is not None

    @property
    def has_trust(self) -> bool:
        return self.truststore_location is not None or self.truststore_certificates is not None

    @property
    def key_name(self) -> str:
        """The key that says where the private key comes from, for messages."""
        return self.prefix + (KEYSTORE if self.keystore_location is not None else KEY)

    @property
    def chain_name(self) -> str:
        return self.prefix + (KEYSTORE if self.keystore_location is not None else CHAIN)

    @property
    def trust_name(self) -> str:
        return self.prefix + (TRUSTSTORE if self.truststore_location is not None else TRUSTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls(TlsSettings):
    """A listener. mapping_rules: `ssl.principal.mapping.rules`. allow_*_changes: a reload may bring another name."""

    client_auth: ClientAuth = ClientAuth.NONE
    mapping_rules: str = DEFAULT
    allow_dn_changes: bool = False
    allow_san_changes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls(TlsSettings):
    """A client. Without a truststore it trusts the system's authorities. check_hostname: the server's certificate
    has to name the host that the client asked for."""

    check_hostname: bool = True


class _Both(TypedDict):
    keystore_location: str | None
    keystore_key: str | None
    keystore_chain: str | None
    key_password: str | None
    truststore_location: str | None
    truststore_certificates: str | None
    protocols: tuple[str, ...]
    ciphers: str
    strict: bool
    prefix: str


def server_tls(values: Mapping[str, str], prefix: str = "") -> ServerTls:
    """Of a listener's values under Kafka's names; an empty one counts as none. Raises BadTls."""
    both = _both(values, prefix)
    auth = _choice(values, prefix, CLIENT_AUTH, [one.value for one in ClientAuth], ClientAuth.NONE.value)
    rules = values.get(MAPPING_RULES, DEFAULT)
    try:
        parse_rules(rules)
    except BadRules as error:
        raise BadTls(f"{prefix}{MAPPING_RULES}: {error}") from error
    made = ServerTls(
        **both,
        client_auth=ClientAuth(auth),
        mapping_rules=rules,
        allow_dn_changes=_flag(values, prefix, DN_CHANGES),
        allow_san_changes=_flag(values, prefix, SAN_CHANGES),
    )
    if not made.has_key:
        raise BadTls(
            f"{prefix}{KEYSTORE} is not set, and a listener with TLS needs a key and a certificate: name a PEM file "
            "with both, as `quorumlog tls init` writes it"
        )
    if made.client_auth is not ClientAuth.NONE and not made.has_trust:
        raise BadTls(
            f"{prefix}{CLIENT_AUTH}={auth} asks clients for certificates, and {prefix}{TRUSTSTORE} is not set: name a "
            "PEM file with the authorities that may issue them"
        )
    return made


def client_tls(values: Mapping[str, str], prefix: str = "") -> ClientTls:
    """Of a client's values under Java's names; an empty one counts as none. Raises BadTls.

    The algorithm of endpoint identification may be empty, which turns the check of names off (`none` is librdkafka's
    word for it).
    """
    algorithm = values.get(ENDPOINT, "https").strip().lower()
    if algorithm not in ("https", "", "none"):
        raise BadTls(
            f"{prefix}{ENDPOINT}={algorithm!r} is not known: https checks the name of the host, an empty value does not"
        )
    return ClientTls(**_both(values, prefix), check_hostname=algorithm == "https")


def _both(values: Mapping[str, str], prefix: str) -> _Both:
    given = {name: text for name, text in values.items() if text.strip()}
    _must_be_pem(given, prefix)
    _must_fit(given, prefix)
    return {
        "keystore_location": given.get(KEYSTORE),
        "keystore_key": given.get(KEY),
        "keystore_chain": given.get(CHAIN),
        "key_password": given.get(KEY_PASSWORD),
        "truststore_location": given.get(TRUSTSTORE),
        "truststore_certificates": given.get(TRUSTED),
        "protocols": _protocols(given, prefix),
        "ciphers": openssl_ciphers(_words(given.get(CIPHER_SUITES, "")), prefix + CIPHER_SUITES),
        "strict": _flag(given, prefix, STRICT),
        "prefix": prefix,
    }


def _must_be_pem(given: Mapping[str, str], prefix: str) -> None:
    for key, passwords, store in (
        (KEYSTORE_TYPE, KEYSTORE_PASSWORD, KEYSTORE),
        (TRUSTSTORE_TYPE, TRUSTSTORE_PASSWORD, TRUSTSTORE),
    ):
        kind = given.get(key, "PEM").strip().upper()
        if kind != "PEM":
            raise BadTls(
                f"{prefix}{key}={kind[:32]}: only PEM is read. `quorumlog tls import FILE` makes PEM of a keystore; "
                f"name that in {prefix}{store} and set {prefix}{key}=PEM"
            )
        if passwords in given:
            instead = f"; the password of an encrypted key is {prefix}{KEY_PASSWORD}" if key == KEYSTORE_TYPE else ""
            raise BadTls(f"{prefix}{passwords} is set, and a PEM file has no password of its own: take it out{instead}")


def _must_fit(given: Mapping[str, str], prefix: str) -> None:
    inline = [key for key in (KEY, CHAIN) if key in given]
    if KEYSTORE in given and inline:
        raise BadTls(f"{prefix}{KEYSTORE} and {prefix}{inline[0]} are both set: take one of them out")
    if len(inline) == 1:
        missing = CHAIN if inline == [KEY] else KEY
        raise BadTls(f"{prefix}{inline[0]} is set without {prefix}{missing}: a key and its certificate go together")
    if TRUSTSTORE in given and TRUSTED in given:
        raise BadTls(f"{prefix}{TRUSTSTORE} and {prefix}{TRUSTED} are both set: take one of them out")
    if KEY_PASSWORD in given and KEYSTORE not in given and KEY not in given:
        raise BadTls(f"{prefix}{KEY_PASSWORD} is set, and no key: set {prefix}{KEYSTORE}, or take the password out")


def _protocols(given: Mapping[str, str], prefix: str) -> tuple[str, ...]:
    words = _words(given.get(ENABLED_PROTOCOLS, ",".join(PROTOCOLS)))
    for word in words:
        if word not in PROTOCOLS:
            why = "too old to be safe" if word in _OLDER else "not known"
            raise BadTls(
                f"{prefix}{ENABLED_PROTOCOLS}: {word[:32]!r} is {why}; write {','.join(PROTOCOLS)} or one of them"
            )
    return tuple(protocol for protocol in PROTOCOLS if protocol in words) or PROTOCOLS


def _words(text: str) -> list[str]:
    """Kafka divides lists by commas, OpenSSL by colons."""
    return [word.strip() for word in text.replace(":", ",").split(",") if word.strip()]


def _choice(values: Mapping[str, str], prefix: str, key: str, choices: list[str], default: str) -> str:
    word = values.get(key, default).strip().lower() or default
    if word not in choices:
        raise BadTls(f"{prefix}{key}={word[:32]!r} is not known: write one of {', '.join(choices)}")
    return word


def _flag(values: Mapping[str, Any], prefix: str, key: str) -> bool:
    return _choice(values, prefix, key, ["true", "false"], "false") == "true"
