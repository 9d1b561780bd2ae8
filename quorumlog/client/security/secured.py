"""From options to what a transport needs: contexts and logins, made once for a client, before any connection."""

from __future__ import annotations

import os
import random
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from quorumlog.client.errors import ConfigError
from quorumlog.client.security.logins import PasswordLogin, TokenLogin
from quorumlog.client.security.names import canonical
from quorumlog.client.security.options import NAMES, SecurityOptions
from quorumlog.rpc.caller_security import PLAIN_TEXT, CallerSecurity, Login
from quorumlog.security.sasl.mechanism import OAUTHBEARER
from quorumlog.security.secret import Secret

if TYPE_CHECKING:
    from quorumlog.client.security.certificates import FreshCertificates


def is_of_security(name: str) -> bool:
    """An option of security, under any of its names."""
    return canonical(name) in NAMES


def caller_security(options: SecurityOptions) -> CallerSecurity:
    """options: checked. Raises ConfigError for files that cannot be used."""
    protocol = options.protocol
    if not protocol.tls and not protocol.sasl:
        return PLAIN_TEXT
    return CallerSecurity(
        protocol=protocol.value,
        tls=_certificates(options) if protocol.tls else None,
        login=_login(options) if protocol.sasl else None,
        why_no_grpc=options.why_no_grpc,
    )


def _certificates(options: SecurityOptions) -> FreshCertificates:
    from quorumlog.client.security.certificates import FreshCertificates
    from quorumlog.security.tls.errors import BadTls
    from quorumlog.security.tls.files import RealFiles

    try:
        return FreshCertificates(options.tls, RealFiles(), _wall_ms, _now_ms)
    except BadTls as error:
        raise ConfigError(str(error)) from None


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _login(options: SecurityOptions) -> Login:
    if options.sasl_mechanism == OAUTHBEARER:
        return _token_login(options)
    name, password = options.user
    return PasswordLogin(options.sasl_mechanism, name, Secret(password), os.urandom)


def _token_login(options: SecurityOptions) -> TokenLogin:
    from quorumlog.client.security import tokens

    url, given = options.sasl_oauthbearer_token_endpoint_url, options.sasl_oauthbearer_token
    if given is not None:
        return _asked_again(partial(tokens.ask_callable, given), "sasl_oauthbearer_token")
    if claims := options.unsecured_claims:

        async def unsecured() -> Secret:
            return tokens.unsecured(claims)

        return _asked_again(unsecured, "sasl_jaas_config")
    if url.lower().startswith("file:"):
        path = tokens.path_of(url)
        return _asked_again(partial(tokens.read_file, path), path)
    endpoint = tokens.EndpointTokens(options.token_request, _endpoint_tls(options), random.SystemRandom().random)
    return TokenLogin(endpoint.newest, endpoint.newest, endpoint.forget, url)


def _asked_again(source: Callable[[], Awaitable[Secret]], whence: str) -> TokenLogin:
    """source: asked for each login."""
    from quorumlog.client.security.tokens import RecentToken

    recent = RecentToken(source, _now_ms)
    return TokenLogin(source, recent.newest, recent.forget, whence)


def _endpoint_tls(options: SecurityOptions) -> ssl.SSLContext | None:
    """The authorities of the brokers, if they are named. Its host is compared in any case: the client's secret goes
    there."""
    if not options.protocol.tls:
        return None
    return _certificates(replace(options, ssl_endpoint_identification_algorithm="https")).newest().context
