"""Requests to a registry and what its answers mean: Confluent's REST API. Pure; `registry.py` carries them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from quorumlog.schemas.errors import (
    BadSchema,
    IncompatibleSchema,
    RegistryForbids,
    RegistryRefused,
    RegistryUnavailable,
    SchemaNotFound,
)
from quorumlog.schemas.framing import MAX_ID
from quorumlog.schemas.schema import Kind, Reference, Registered, Schema

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
RETRIED = (408, 429, 500, 502, 503, 504)
MAX_MESSAGE = 2_000  # signs of what the registry says, in an error
LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Ask:
    """path: with the query, from the registry's address on."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None

    @property
    def content(self) -> bytes:
        return b"" if self.body is None else json.dumps(self.body).encode()


def by_id(schema_id: int) -> Ask:
    return Ask("GET", f"/schemas/ids/{schema_id}")


def by_guid(guid: bytes) -> Ask:
    """guid: 16 bytes."""
    return Ask("GET", f"/schemas/guids/{show_guid(guid)}")


def show_guid(guid: bytes) -> str:
    text = guid.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def version(subject: str, number: int | str = LATEST) -> Ask:
    return Ask("GET", f"/subjects/{_part(subject)}/versions/{number}")


def lookup(subject: str, schema: Schema, *, normalize: bool = False) -> Ask:
    return Ask("POST", f"/subjects/{_part(subject)}{_query(normalize)}", _body(schema))


def register(subject: str, schema: Schema, *, normalize: bool = False) -> Ask:
    return Ask("POST", f"/subjects/{_part(subject)}/versions{_query(normalize)}", _body(schema))


def _part(subject: str) -> str:
    return quote(subject, safe="")


def _query(normalize: bool) -> str:
    return "?normalize=true" if normalize else ""


def _body(schema: Schema) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema.text}
    if schema.kind is not Kind.AVRO:  # a registry from before the other kinds knows no such field
        body["schemaType"] = schema.kind.value
    if schema.references:
        body["references"] = [
            {"name": one.name, "subject": one.subject, "version": one.version} for one in schema.references
        ]
    return body


def read_answer(ask: Ask, status: int, content: bytes) -> dict[str, Any]:
    """Raises RegistryRefused, or RegistryUnavailable for what is no registry's answer."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if status == 200 and isinstance(document, dict):
        return document
    if not isinstance(document, dict):
        if 300 <= status < 400:
            raise RegistryUnavailable(f"it answered {ask.path} with {status}; a redirect is not followed")
        if status in (401, 403):
            raise RegistryForbids(status, 0, f"{ask.path}: check basic.auth.user.info")
        raise RegistryUnavailable(f"it answered {ask.path} with {status} and no JSON: is it a schema registry?")
    raise refusal(ask, status, document)


def refusal(ask: Ask, status: int, document: Mapping[str, Any]) -> RegistryRefused | BadSchema:
    code = document.get("error_code")
    code = code if isinstance(code, int) and not isinstance(code, bool) else 0
    said = str(document.get("message", ""))[:MAX_MESSAGE] or "no reason was given"
    if status == 404:
        return SchemaNotFound(status, code, f"{said} ({ask.path})")
    if status == 409:
        return IncompatibleSchema(status, code, f"{said} ({ask.path}): change the schema, or the subject's rule")
    if status in (401, 403):
        return RegistryForbids(status, code, f"{said} ({ask.path}): check basic.auth.user.info and the user's rights")
    if status == 422:
        return BadSchema(f"the schema registry calls it invalid: {code or status}: {said} ({ask.path})")
    return RegistryRefused(status, code, f"{said} ({ask.path})")


def schema_of(document: Mapping[str, Any]) -> Schema:
    """Raises BadSchema."""
    text, kind = document.get("schema"), document.get("schemaType") or Kind.AVRO.value
    given = document.get("references") or []
    if not isinstance(text, str) or kind not in [*Kind] or not isinstance(given, list):
        raise BadSchema(f"the registry told no schema of a kind that is known here ({', '.join(Kind)}): {kind!r:.100}")
    return Schema(text, Kind(kind), tuple(map(_reference, given)))


def _reference(given: Any) -> Reference:
    match given:
        case {"name": str(name), "subject": str(subject), "version": int(number)}:
            return Reference(name, subject, number)
    raise BadSchema(f"the registry told a reference that is none: {given!r:.200}")


def registered_of(document: Mapping[str, Any]) -> Registered:
    """Raises BadSchema."""
    match document:
        case {"subject": str(subject), "version": int(number)}:
            return Registered(id=id_of(document), subject=subject, version=number, schema=schema_of(document))
    raise BadSchema("the registry told no version of a subject")


def id_of(document: Mapping[str, Any]) -> int:
    """Raises BadSchema."""
    found = document.get("id")
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= MAX_ID:
        raise BadSchema(f"the registry told no id of a schema: {found!r:.100}")
    return found


class Exchange:
    """Which address is asked next, and when: each of them once, all again after a pause, until it is given up.

    first: the index of the address to begin with. Never asks more than len(urls) * (1 + retries) times.
    """

    def __init__(
        self, urls: tuple[str, ...], first: int, *, retries: int, backoff_ms: int, backoff_max_ms: int
    ) -> None:
        assert urls and 0 <= first < len(urls)
        self._urls, self._at = urls, first
        self._left = len(urls) * (1 + retries)
        self._asked = 0
        self._backoff_ms, self._max_ms = backoff_ms, backoff_max_ms
        self._why: dict[str, str] = {}

    @property
    def url(self) -> str:
        return self._urls[self._at]

    @property
    def index(self) -> int:
        return self._at

    def failed(self, why: str) -> int:
        """The pause in ms before `url`, which is another one now. Raises RegistryUnavailable after the last."""
        self._why[self.url] = why
        self._asked += 1
        if self._asked >= self._left:
            told = "; ".join(f"{url}: {text}" for url, text in self._why.items())
            raise RegistryUnavailable(f"the schema registry gave no answer: {told}; check schema.registry.url")
        self._at = (self._at + 1) % len(self._urls)
        rounds, within = divmod(self._asked, len(self._urls))
        return 0 if within else int(min(self._max_ms, self._backoff_ms * 2 ** (rounds - 1)))
