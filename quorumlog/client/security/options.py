"""The options of security, checked before any connection: a half configuration never means an anonymous client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from quorumlog.client.errors import ConfigError
from quorumlog.security.protocol import SecurityProtocol
from quorumlog.security.sasl.jaas import JaasEntry, JaasError, read_jaas
from quorumlog.security.sasl.mechanism import OAUTHBEARER, PLAIN, SCRAM_SHA_256, SCRAM_SHA_512
from quorumlog.security.secret import Secret
from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.settings import PROTOCOLS, ClientTls, client_tls

if TYPE_CHECKING:
    from quorumlog.security.sasl.token_request import TokenRequest

MECHANISMS = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)
TokenSource = Callable[[], "str | Awaitable[str]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityOptions:
    """Kafka's names. What is secret is not shown by `repr`."""

    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    sasl_username: str = ""
    sasl_password: str = field(default="", repr=False)
    sasl_jaas_config: str = field(default="", repr=False)
    sasl_oauthbearer_token: TokenSource | None = None
    sasl_oauthbearer_token_endpoint_url: str = ""
    sasl_oauthbearer_client_credentials_client_id: str = ""
    sasl_oauthbearer_client_credentials_client_secret: str = field(default="", repr=False)
    sasl_oauthbearer_scope: str = ""
    sasl_oauthbearer_header_urlencode: bool = False
    ssl_truststore_type: str = "PEM"
    ssl_truststore_location: str = ""
    ssl_truststore_certificates: str = field(default="", repr=False)
    ssl_truststore_password: str = field(default="", repr=False)
    ssl_keystore_type: str = "PEM"
    ssl_keystore_location: str = ""
    ssl_keystore_password: str = field(default="", repr=False)
    ssl_key_location: str = ""
    ssl_keystore_certificate_chain: str = field(default="", repr=False)
    ssl_keystore_key: str = field(default="", repr=False)
    ssl_key_password: str = field(default="", repr=False)
    ssl_endpoint_identification_algorithm: str = "https"
    ssl_enabled_protocols: str = ",".join(PROTOCOLS)
    ssl_cipher_suites: str = ""
    ssl_verify_strict: bool = False

    @property
    def protocol(self) -> SecurityProtocol:
        return SecurityProtocol(self.security_protocol.upper())

    @property
    def jaas(self) -> JaasEntry | None:
        """Raises ConfigError."""
        if not self.sasl_jaas_config:
            return None
        try:
            return read_jaas(self.sasl_jaas_config)
        except JaasError as error:
            raise ConfigError(str(error)) from None

    def of_jaas(self, name: str) -> str:
        """An option of the JAAS line; "" if it has none."""
        value = self.jaas.options.get(name) if self.jaas is not None else None
        return value.reveal() if value is not None else ""

    @property
    def user(self) -> tuple[str, str]:
        """Name and password, from the options or the JAAS line."""
        if self.jaas is not None:
            return self.of_jaas("username"), self.of_jaas("password")
        return self.sasl_username, self.sasl_password

    @property
    def token_request(self) -> TokenRequest:
        """To the token's endpoint. Raises ConfigError."""
        from quorumlog.security.sasl.token_request import client_credentials_request

        try:
            return client_credentials_request(
                self.sasl_oauthbearer_token_endpoint_url,
                self.sasl_oauthbearer_client_credentials_client_id or self.of_jaas("clientId"),
                Secret(self.sasl_oauthbearer_client_credentials_client_secret or self.of_jaas("clientSecret")),
                self.sasl_oauthbearer_scope or self.of_jaas("scope"),
                is_header_encoded=self.sasl_oauthbearer_header_urlencode,
            )
        except ValueError as error:
            raise ConfigError(str(error)) from None

    def check_security(self) -> None:
        """Raises ConfigError. Files are read later, by `caller_security`."""
        names = [one.value for one in SecurityProtocol]
        if self.security_protocol.upper() not in names:
            raise ConfigError(f"security_protocol must be one of {', '.join(names)}: {self.security_protocol!r}")
        self._check_unused()
        if self.protocol.tls:
            self._check_tls()
        if self.protocol.sasl:
            self._check_sasl()

    def _check_unused(self) -> None:
        tls, sasl = self.protocol.tls, self.protocol.sasl
        for prefix, used, wanted in (
            ("sasl_", sasl, "SASL_SSL" if tls or self._is_set("ssl_") else "SASL_PLAINTEXT or SASL_SSL"),
            ("ssl_", tls, "SASL_SSL" if sasl else "SSL"),
        ):
            name = self._is_set(prefix)
            if name and not used:
                raise ConfigError(
                    f"{name} is set, but security_protocol={self.protocol.value} does not use it: "
                    f"set security_protocol to {wanted}, or remove {name}"
                )

    def _is_set(self, prefix: str) -> str:
        """The first option of this prefix that differs from its default; "" if there is none."""
        return next(
            (
                one.name
                for one in fields(self)
                if one.name.startswith(prefix) and getattr(self, one.name) != one.default
            ),
            "",
        )

    @property
    def why_no_grpc(self) -> str:
        """Why gRPC cannot be protected as these options say, and what to change; empty: it can. Raises ConfigError."""
        if self.protocol.sasl and not self.protocol.tls:
            return "gRPC takes a login over TLS only: set security_protocol=SASL_SSL"
        if self.protocol.tls and not self.tls.check_hostname:
            return (
                "gRPC always compares the host with its certificate: leave ssl_endpoint_identification_algorithm "
                "at https"
            )
        if self.protocol.sasl and self.sasl_mechanism != OAUTHBEARER and ":" in self.user[0]:
            return "gRPC takes no user with a colon in the name (RFC 7617): use Kafka's protocol, or another user"
        return ""

    def _check_tls(self) -> None:
        if self.ssl_key_location:
            if not self.ssl_keystore_location:
                raise ConfigError("ssl_key_location needs the certificate to the key: set ssl_keystore_location, too")
            if self.ssl_keystore_key or self.ssl_keystore_certificate_chain:
                raise ConfigError("ssl_key_location is set beside ssl_keystore_key or its chain: remove one of both")
        _ = self.tls

    @property
    def tls(self) -> ClientTls:
        """Raises ConfigError. Where the key has a file of its own, both texts are read now."""
        values = {name.replace("_", "."): str(getattr(self, name)) for name in TLS_NAMES}
        if self.ssl_key_location:
            values["ssl.keystore.location"] = ""
            values["ssl.keystore.certificate.chain"] = _text_of("ssl_keystore_location", self.ssl_keystore_location)
            values["ssl.keystore.key"] = _text_of("ssl_key_location", self.ssl_key_location)
        try:
            return client_tls(values)
        except BadTls as error:
            raise ConfigError(str(error)) from None

    def _check_sasl(self) -> None:
        jaas, mechanism = self.jaas, self.sasl_mechanism
        if mechanism == "GSSAPI":
            raise ConfigError("sasl_mechanism=GSSAPI (Kerberos) is not built: use SCRAM-SHA-512, PLAIN or OAUTHBEARER")
        if not mechanism:
            raise ConfigError(
                f"security_protocol={self.protocol.value} needs sasl_mechanism: set it to {', '.join(MECHANISMS)}"
            )
        if mechanism not in MECHANISMS:
            raise ConfigError(f"sasl_mechanism must be one of {', '.join(MECHANISMS)}: {mechanism!r}")
        if jaas is not None and jaas.module.name != mechanism.partition("-SHA-")[0]:
            raise ConfigError(
                f"sasl_jaas_config is for {jaas.module.name}, but sasl_mechanism is {mechanism}: change one of both"
            )
        if jaas is not None and (self.sasl_username or self.sasl_password):
            raise ConfigError("sasl_jaas_config is set beside sasl_username or sasl_password: remove one of both")
        if mechanism == OAUTHBEARER:
            self._check_tokens()
        else:
            self._check_password()

    def _check_password(self) -> None:
        if self.of_jaas("tokenauth").lower() == "true":
            raise ConfigError("sasl_jaas_config asks for delegation tokens, which are not built: use a user's password")
        name, password = self.user
        where = ("username", "password") if self.jaas is None else ("username in it", "password in it")
        for part, value, key in zip(("sasl_username", "sasl_password"), (name, password), where, strict=True):
            if not value:
                shown = part if self.jaas is None else f"sasl_jaas_config: {key}"
                raise ConfigError(f"sasl_mechanism={self.sasl_mechanism} needs {shown}: set it")
            if "\0" in value:
                raise ConfigError(f"{part} has a NUL character, which SASL cannot carry: remove it")
        for key in ("sasl_oauthbearer_token_endpoint_url", "sasl_oauthbearer_token"):
            if getattr(self, key):
                raise ConfigError(f"{key} is set, but sasl_mechanism is {self.sasl_mechanism}: set it to OAUTHBEARER")

    def _check_tokens(self) -> None:
        if self.sasl_username or self.sasl_password:
            raise ConfigError("sasl_username and sasl_password are not for OAUTHBEARER: remove them")
        url, unsecured = self.sasl_oauthbearer_token_endpoint_url, self.unsecured_claims
        if bool(url) + (self.sasl_oauthbearer_token is not None) + bool(unsecured) != 1:
            raise ConfigError(
                "sasl_mechanism=OAUTHBEARER needs one source of tokens: set sasl_oauthbearer_token (a callable) or "
                "sasl_oauthbearer_token_endpoint_url (file:///PATH, or https:// with a client id and secret)"
            )
        if self.sasl_oauthbearer_token is not None and not callable(self.sasl_oauthbearer_token):
            raise ConfigError("sasl_oauthbearer_token must be a callable that returns a token: give a function")
        scheme = url.partition(":")[0].lower()
        if url and scheme not in ("file", "http", "https"):
            raise ConfigError("sasl_oauthbearer_token_endpoint_url must begin with file:, https: or http:")
        if scheme in ("http", "https"):
            _ = self.token_request

    @property
    def unsecured_claims(self) -> dict[str, str]:
        """Of a token without a signature, as Kafka makes it in development (KIP-255), by claim."""
        prefix = "unsecuredLoginStringClaim_"
        options = self.jaas.options if self.jaas is not None else {}
        return {name.removeprefix(prefix): one.reveal() for name, one in options.items() if name.startswith(prefix)}


TLS_NAMES = tuple(
    one.name for one in fields(SecurityOptions) if one.name.startswith("ssl_") and one.name != "ssl_key_location"
)
NAMES = frozenset(one.name for one in fields(SecurityOptions))
SECRET_NAMES = frozenset(one.name for one in fields(SecurityOptions) if not one.repr)


def _text_of(name: str, path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"{name}: {path} cannot be read: {why}. Check the path and the rights") from None
