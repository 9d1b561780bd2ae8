"""How to reach a registry, under Confluent's names. Pure: nothing is read here, and nothing asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import unquote, urlsplit

from quorumlog.client.errors import ConfigError
from quorumlog.client.security.names import canonical
from quorumlog.client.security.registry_names import PLAIN, PREFIX

_SOURCES = {"basic_auth_credentials_source": ("USER_INFO", "URL"), "bearer_auth_credentials_source": ("STATIC_TOKEN",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryOptions:
    """Times in ms. urls: tried in their order, from the one that answered last on. ssl: Java's names, for `client_tls`.

    retries: how often all addresses are tried again after the first time. cached: schemas by id, and by subject, that
    are kept; the one that was used least recently goes. latest_ttl_ms: how long a subject's latest version is taken for
    the latest. failure_ttl_ms: how long a failure is told again without asking, so that a stream of bad records does
    not ask for each.
    """

    urls: tuple[str, ...]
    basic_auth_user_info: str = field(default="", repr=False)
    bearer_auth_token: str = field(default="", repr=False)
    ssl: Mapping[str, str] = field(default_factory=dict, repr=False)
    request_timeout_ms: int = 5_000
    retries: int = 2
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    cached: int = 1_000
    latest_ttl_ms: int = 300_000
    failure_ttl_ms: int = 1_000
    max_answer_bytes: int = 4 * 1024 * 1024


_NUMBERS = tuple(one.name for one in fields(RegistryOptions) if one.type == "int")


def registry_options(config: Mapping[str, Any]) -> RegistryOptions:
    """config: `schema.registry.url` and others, with dots or underscores; the prefix may be left out but for TLS.

    Raises ConfigError, which shows no secret.
    """
    given: dict[str, str] = {}
    for name, value in config.items():
        key = canonical(name.replace(".", "_").removeprefix(PREFIX))
        if key in given and given[key] != str(value):
            raise ConfigError(f"{name} is given twice, with and without schema.registry: remove one of both")
        given[key] = ",".join(value) if key == "url" and not isinstance(value, str) else str(value)
    ssl = {name.replace("_", "."): value for name, value in given.items() if name.startswith("ssl_")}
    known = {"url", *PLAIN, *_NUMBERS}
    for name in given:
        if name not in known and not name.startswith("ssl_"):
            raise ConfigError(f"unknown option schema.registry {name!r}; known: {', '.join(sorted(known))}, ssl_...")
    for name, sources in _SOURCES.items():
        if given.get(name, sources[0]).upper() not in sources:
            raise ConfigError(f"{name} {given[name]!r} is not known here; known: {', '.join(sources)}")
    urls, of_url = _urls(given.get("url", ""))
    user = given.get("basic_auth_user_info", "") or of_url
    token = given.get("bearer_auth_token", "")
    if user and token:
        raise ConfigError("basic_auth_user_info and bearer_auth_token are both given: remove one of both")
    if user and ":" not in user:
        raise ConfigError("basic_auth_user_info is not USER:PASSWORD")
    if not (token.isascii() and token.isprintable()):
        raise ConfigError("bearer_auth_token has signs that no token has")
    numbers = {name: _number(name, given[name]) for name in _NUMBERS if name in given}
    return RegistryOptions(urls=urls, basic_auth_user_info=user, bearer_auth_token=token, ssl=ssl, **numbers)


def _urls(text: str) -> tuple[tuple[str, ...], str]:
    """The addresses without users, and the user that one of them names."""
    found: list[str] = []
    user = ""
    for one in filter(None, (part.strip() for part in text.split(","))):
        try:
            parts = urlsplit(one)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if host is None or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
            raise ConfigError("schema.registry.url is not http://HOST:PORT or https://HOST:PORT, separated by commas")
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        shown = f"[{host}]" if ":" in host else host
        found.append(f"{parts.scheme}://{shown}" + (f":{port}" if port else "") + parts.path.rstrip("/"))
    if not found:
        raise ConfigError("schema.registry.url is not set: name the registry, as in http://localhost:8081")
    return tuple(found), user


def _number(name: str, text: str) -> int:
    least = 0 if name in ("retries", "latest_ttl_ms", "failure_ttl_ms", "retry_backoff_ms") else 1
    if not (text.isascii() and text.isdigit() and len(text) < 12) or int(text) < least:
        raise ConfigError(f"{name} must be a whole number from {least} on: {text!r}")
    return int(text)
