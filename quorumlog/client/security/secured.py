"""From options to what a transport needs: contexts and logins, made once for a client, before any connection."""

from __future__ import annotations

import os
import ssl
from functools import partial

from quorumlog.client.errors import ConfigError
from quorumlog.client.security import tokens
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
    return CallerSecurity(protocol=protocol.value, tls=tls, login=_login(options, tls) if protocol.sasl else None)


def _context(options: SecurityOptions) -> ssl.SSLContext:
    from quorumlog.security.tls.contexts import client_context
    from quorumlog.security.tls.errors import BadTls

    try:
        return client_context(options.tls)
    except BadTls as error:
        raise ConfigError(str(error)) from None


def _login(options: SecurityOptions, tls: ssl.SSLContext | None) -> Login:
    if options.sasl_mechanism == OAUTHBEARER:
        return _token_login(options, tls)
    name, password = options.user
    return PasswordLogin(options.sasl_mechanism, name, Secret(password), os.urandom)


def _token_login(options: SecurityOptions, tls: ssl.SSLContext | None) -> TokenLogin:
    url, given = options.sasl_oauthbearer_token_endpoint_url, options.sasl_oauthbearer_token
    if given is not None:
        return TokenLogin(partial(tokens.ask_callable, given), "sasl_oauthbearer_token")
    if claims := options.unsecured_claims:

        async def unsecured() -> str:
            return tokens.unsecured(claims)

        return TokenLogin(unsecured, "sasl_jaas_config")
    if url.lower().startswith("file:"):
        path = tokens.path_of(url)
        return TokenLogin(partial(tokens.read_file, path), str(path))
    client_id, secret, scope = options.client_credentials
    urlencode = options.sasl_oauthbearer_header_urlencode
    ask = partial(tokens.ask_endpoint, url, client_id, secret, scope, urlencode=urlencode, tls=tls)
    return TokenLogin(ask, url)
