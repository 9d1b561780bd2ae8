"""A schema registry over HTTP for tests, written from Confluent's documentation of the API. In memory, in a thread.

It keeps what it is told as it is told; compatibility is by a rule that a test gives it. Requests are counted.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import UUID

from google.protobuf import descriptor_pb2

Document = dict[str, Any]
KEPT = ("schema", "schemaType", "references")


class HttpRegistry:
    """Subjects count their versions from 1; ids are global. user: who may ask; "": anybody. failures: statuses to
    answer the next requests with. compatible: whether a subject that has the first schema takes the second."""

    def __init__(self, user: str = "") -> None:
        self.schemas: list[Document] = []  # the id is the place, from 1
        self.subjects: dict[str, list[int]] = {}
        self.user, self.failures, self.asked = user, list[int](), list[str]()
        self.compatible: Callable[[Document, Document], bool] = lambda old, new: True
        self.url = ""
        self._lock = threading.Lock()

    def answer(self, method: str, target: str, body: Document | None) -> tuple[int, Document]:
        with self._lock:
            self.asked.append(f"{method} {target}")
            if self.failures:
                status = self.failures.pop(0)
                return status, {"error_code": status, "message": "a failure that the test wants"}
            parts = urlsplit(target)
            path = [unquote(part) for part in parts.path.split("/")[1:]]
            return self._answer(method, path, parse_qs(parts.query), body or {})

    def _answer(
        self, method: str, path: list[str], query: dict[str, list[str]], body: Document
    ) -> tuple[int, Document]:
        match method, path:
            case "GET", ["schemas", "ids", number]:
                return self._by_id(int(number), query)
            case "GET", ["schemas", "guids", guid]:
                return self._by_id(UUID(guid).int, query)
            case "GET", ["subjects", subject, "versions", version]:
                return self._version(subject, version, query)
            case "POST", ["subjects", subject]:
                return self._lookup(subject, body)
            case "POST", ["subjects", subject, "versions"]:
                return self._register(subject, body)
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _by_id(self, number: int, query: dict[str, list[str]]) -> tuple[int, Document]:
        if not 0 < number <= len(self.schemas):
            return 40403 // 100, {"error_code": 40403, "message": f"Schema {number} not found"}
        return 200, self._told(number, query)

    def _told(self, number: int, query: dict[str, list[str]]) -> Document:
        found = self.schemas[number - 1]
        if query.get("format") == ["serialized"] and found.get("schemaType") == "PROTOBUF":
            return {**found, "schema": self._serialized(found)}
        return {**found, "guid": str(UUID(int=number))}

    def _serialized(self, found: Document) -> str:
        from quorumlog.schemas.formats.protoc import compiled

        try:
            descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(found["schema"], validate=True))
            return str(found["schema"])
        except ValueError:
            pass
        made = descriptor_pb2.FileDescriptorSet.FromString(compiled("default", {"default": found["schema"]}))
        return base64.b64encode(made.file[-1].SerializeToString()).decode()

    def _version(self, subject: str, version: str, query: dict[str, list[str]]) -> tuple[int, Document]:
        ids = self.subjects.get(subject)
        if ids is None:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        number = len(ids) if version in ("latest", "-1") else int(version)
        if not 0 < number <= len(ids):
            return 404, {"error_code": 40402, "message": f"Version {version} not found."}
        return 200, {"subject": subject, "version": number, "id": ids[number - 1], **self._told(ids[number - 1], query)}

    def _lookup(self, subject: str, body: Document) -> tuple[int, Document]:
        if subject not in self.subjects:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        wanted = _kept(body)
        for version, number in enumerate(self.subjects[subject], 1):
            if self.schemas[number - 1] == wanted:
                return 200, {"subject": subject, "version": version, "id": number, **self._told(number, {})}
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def _register(self, subject: str, body: Document) -> tuple[int, Document]:
        wanted = _kept(body)
        if wanted.get("schemaType", "AVRO") != "PROTOBUF":
            try:
                json.loads(wanted["schema"])
            except ValueError:
                return 422, {"error_code": 42201, "message": "Invalid schema"}
        ids = self.subjects.setdefault(subject, [])
        if ids and not self.compatible(self.schemas[ids[-1] - 1], wanted):
            return 409, {"error_code": 409, "message": "READER_FIELD_MISSING_DEFAULT_VALUE: field 'added'"}
        if wanted not in self.schemas:
            self.schemas.append(wanted)
        number = self.schemas.index(wanted) + 1
        if number not in ids:
            ids.append(number)
        return 200, {"id": number, "guid": str(UUID(int=number)), "version": ids.index(number) + 1, **wanted}


def _kept(body: Document) -> Document:
    found = {name: body[name] for name in KEPT if body.get(name)}
    return {name: value for name, value in found.items() if (name, value) != ("schemaType", "AVRO")}


@contextmanager
def serving(registry: HttpRegistry, tls: ssl.SSLContext | None = None) -> Iterator[HttpRegistry]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._do()

        do_POST = do_GET

        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            wanted = "Basic " + base64.b64encode(registry.user.encode()).decode()
            if registry.user and self.headers.get("Authorization") != wanted:
                status, document = 401, {"error_code": 40101, "message": "Unauthorized"}
            else:
                status, document = registry.answer(self.command, self.path, body)
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    registry.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}"
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
