"""A client of a schema registry. Blocking, from any thread: serializers run in the thread that calls.

What an id stands for never changes, so it is asked for once; a failure is told again for `failure_ttl_ms` without
asking. Only one request is under way at a time: two threads that need the same schema ask once.
"""

from __future__ import annotations

import base64
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from quorumlog.client.errors import ConfigError
from quorumlog.schemas import asking
from quorumlog.schemas.asking import Ask, Exchange
from quorumlog.schemas.cache import Cache
from quorumlog.schemas.errors import BadSchema, RegistryRefused, RegistryUnavailable, SchemaError
from quorumlog.schemas.options import RegistryOptions, registry_options
from quorumlog.schemas.schema import Reference, Registered, Schema
from quorumlog.security.http_answer import Answer, FetchError, ask
from quorumlog.security.tls.contexts import client_context
from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.settings import client_tls

T = TypeVar("T")
Fetch = Callable[[str, str, Mapping[str, str], bytes], Answer]
"""f(method, url, headers, content) -> answer. Raises FetchError. It gives up after a time of its own."""
MAX_REFERENCED = 200  # schemas that one schema refers to, over all levels


class SchemaRegistry:
    """config: `schema.registry.url`, `basic.auth.user.info`, ... as Confluent names them.

    fetch, now_ms, pause: the edges; None: HTTP, the machine's clock, and its sleep. Raises ConfigError.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | str,
        *,
        fetch: Fetch | None = None,
        now_ms: Callable[[], int] | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        given = {"schema.registry.url": config} if isinstance(config, str) else config
        self.options = registry_options(given)
        clock = now_ms or _monotonic_ms
        self._fetch, self._pause = fetch or _http(self.options), pause
        self._headers = _headers(self.options)
        self._first = 0  # of the addresses: the one that answered last
        self._asking = threading.Lock()
        most = self.options.cached
        self._known: Cache[tuple[Any, ...], Any] = Cache(most, clock)
        self._failures: Cache[tuple[Any, ...], SchemaError] = Cache(most, clock)

    def schema(self, schema_id: int | bytes) -> Schema:
        """Raises SchemaNotFound, RegistryRefused, RegistryUnavailable, BadSchema."""
        by = asking.by_id(schema_id) if isinstance(schema_id, int) else asking.by_guid(schema_id)
        return self._kept(("id", schema_id), lambda: asking.schema_of(self._ask(by)))

    def latest(self, subject: str) -> Registered:
        """As of `latest_ttl_ms` ago at most. Raises as `schema`."""
        ttl_ms = self.options.latest_ttl_ms
        return self._kept(("latest", subject), lambda: self._registered(asking.version(subject)), ttl_ms)

    def version(self, subject: str, number: int) -> Registered:
        return self._kept(("version", subject, number), lambda: self._registered(asking.version(subject, number)))

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> Registered:
        """The version of the subject that has this schema. Raises SchemaNotFound where none has."""
        how = asking.lookup(subject, schema, normalize=normalize)
        return self._kept(("lookup", subject, schema, normalize), lambda: self._registered(how))

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        """The id; an existing one if the subject has this schema. Raises IncompatibleSchema, and as `schema`."""
        how = asking.register(subject, schema, normalize=normalize)
        return self._kept(("register", subject, schema, normalize), lambda: asking.id_of(self._ask(how)))

    def referenced(self, schema: Schema) -> dict[str, Schema]:
        """What it refers to, by name, over all levels; what comes later may refer to what comes earlier.

        Raises BadSchema for a circle and for more than MAX_REFERENCED, and as `schema`.
        """
        found: dict[str, Schema] = {}
        self._collect(schema.references, found, ())
        return found

    def _collect(
        self, references: tuple[Reference, ...], found: dict[str, Schema], above: tuple[Reference, ...]
    ) -> None:
        for one in references:
            if one in above:
                raise BadSchema(f"schema {one.name!r} of subject {one.subject!r} refers to itself")
            if one.name in found:
                continue
            if len(found) + len(above) >= MAX_REFERENCED:
                raise BadSchema(f"the schema refers to more than {MAX_REFERENCED} others")
            schema = self.version(one.subject, one.version).schema
            self._collect(schema.references, found, (*above, one))
            found[one.name] = schema

    def known(self, schema_id: int | bytes) -> Schema | None:
        """What `schema` returns without asking anybody; None: it would ask."""
        found: Schema | None = self._known.get(("id", schema_id))
        return found

    def known_latest(self, subject: str) -> Registered | None:
        """What `latest` returns without asking anybody; None: it would ask."""
        found: Registered | None = self._known.get(("latest", subject))
        return found

    # --- helpers ---

    def _kept(self, key: tuple[Any, ...], find: Callable[[], T], ttl_ms: int | None = None) -> T:
        held: T | None = self._known.get(key)
        if held is not None:
            return held
        with self._asking:
            again: T | None = self._known.get(key)  # another thread may have asked meanwhile
            if again is not None:
                return again
            failure = self._failures.get(key)
            if failure is not None:
                raise failure.with_traceback(None)
            try:
                found = find()
            except SchemaError as error:
                self._failures.put(key, error, self.options.failure_ttl_ms)
                raise
            self._known.put(key, found, ttl_ms)
        return found

    def _registered(self, request: Ask) -> Registered:
        return asking.registered_of(self._ask(request))

    def _ask(self, request: Ask) -> dict[str, Any]:
        options = self.options
        exchange = Exchange(
            options.urls, self._first, retries=options.retries,
            backoff_ms=options.retry_backoff_ms, backoff_max_ms=options.retry_backoff_max_ms,
        )  # fmt: skip
        while True:
            try:
                status, content = self._fetch(
                    request.method, exchange.url + request.path, self._headers, request.content
                )
                if status not in asking.RETRIED:
                    found = asking.read_answer(request, status, content)
                    self._first = exchange.index
                    return found
                why = f"it answered {status}"
            except (FetchError, RegistryUnavailable) as error:
                why = str(error)
            except (RegistryRefused, BadSchema):
                self._first = exchange.index
                raise
            self._pause(exchange.failed(why) / 1_000)


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _headers(options: RegistryOptions) -> dict[str, str]:
    headers = {"Accept": f"{asking.CONTENT_TYPE}, application/json", "Content-Type": asking.CONTENT_TYPE}
    if options.bearer_auth_token:
        headers["Authorization"] = f"Bearer {options.bearer_auth_token}"
    elif options.basic_auth_user_info:
        headers["Authorization"] = "Basic " + base64.b64encode(options.basic_auth_user_info.encode()).decode()
    return headers


def _http(options: RegistryOptions) -> Fetch:
    """Raises ConfigError for certificates that cannot be used."""
    context: ssl.SSLContext | None = None
    try:
        if options.ssl:
            context = client_context(client_tls(options.ssl, "schema.registry."))
    except BadTls as error:
        raise ConfigError(str(error)) from None
    timeout_s, most = options.request_timeout_ms / 1_000, options.max_answer_bytes

    def fetch(method: str, url: str, headers: Mapping[str, str], content: bytes) -> Answer:
        return ask(method, url, headers, content, context, timeout_s, most)

    return fetch
