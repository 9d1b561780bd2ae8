"""From options to what a transport needs: contexts and logins, made once for a client, before any connection."""

from __future__ import annotations

import os
import random
import ssl
from dataclasses import replace
from functools import partial

from quorumlog.client.errors import ConfigError
from quorumlog.client.security.logins import PasswordLogin, TokenLogin
from quorumlog.client.security.names import canonical
from quorumlog.client.security.options import NAMES, SecurityOptions
from quorumlog.rpc.caller_security import PLAIN_TEXT, CallerSecurity, Login
from quorumlog.security.sasl.mechanism import OAUTHBEARER
from quorumlog.security.secret import Secret


def is_of_security(name: str) -> bool:
    """An option of security, under any of its names."""
    return canonical(name) in NAMES


def caller_security(options: SecurityOptions) -> CallerSecurity:
    """options: checked. Raises ConfigError for files that cannot be used."""
    protocol = options.protocol
    if not protocol.tls and not protocol.sasl:
        return PLAIN_TEXT
    tls = _context(options) if protocol.tls else None
    return CallerSecurity(protocol=protocol.value, tls=tls, login=_login(options) if protocol.sasl else None)


def _context(options: SecurityOptions) -> ssl.SSLContext:
    from quorumlog.security.tls.contexts import client_context
    from quorumlog.security.tls.errors import BadTls

    try:
        return client_context(options.tls)
    except BadTls as error:
        raise ConfigError(str(error)) from None


def _login(options: SecurityOptions) -> Login:
    if options.sasl_mechanism == OAUTHBEARER:
        return _token_login(options)
    name, password = options.user
    return PasswordLogin(options.sasl_mechanism, name, Secret(password), os.urandom)


def _token_login(options: SecurityOptions) -> TokenLogin:
    from quorumlog.client.security import tokens

    url, given = options.sasl_oauthbearer_token_endpoint_url, options.sasl_oauthbearer_token
    if given is not None:
        return TokenLogin(partial(tokens.ask_callable, given), "sasl_oauthbearer_token")
    if claims := options.unsecured_claims:

        async def unsecured() -> Secret:
            return tokens.unsecured(claims)

        return TokenLogin(unsecured, "sasl_jaas_config")
    if url.lower().startswith("file:"):
        path = tokens.path_of(url)
        return TokenLogin(partial(tokens.read_file, path), path)
    endpoint = tokens.EndpointTokens(options.token_request, _endpoint_tls(options), random.SystemRandom().random)
    return TokenLogin(endpoint.newest, url, endpoint.forget)


def _endpoint_tls(options: SecurityOptions) -> ssl.SSLContext | None:
    """The authorities of the brokers, if they are named. Its host is compared in any case: the client's secret goes
    there."""
    if not options.protocol.tls:
        return None
    return _context(replace(options, ssl_endpoint_identification_algorithm="https"))
