"""A token endpoint (RFC 6749, 4.4) with signed tokens, and the file of its public keys for brokers."""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

ISSUER, AUDIENCE, KEY_ID = "https://issuer.example", "kafka", "k1"


class Issuer:
    """clients: id -> secret. given: how many tokens the endpoint gave."""

    def __init__(self, jwks: Path, clients: dict[str, str]) -> None:
        self.jwks, self.clients, self.given, self.url = jwks, clients, 0, ""
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
        public = self._key.public_key().public_numbers()
        numbers = {"n": _number(public.n), "e": _number(public.e)}
        jwks.write_text(json.dumps({"keys": [{"kty": "RSA", "kid": KEY_ID, "alg": "RS256", "use": "sig", **numbers}]}))

    def token(self, subject: str, lifetime_s: float = 300, **claims: Any) -> str:
        now_s = int(time.time())
        body = {"sub": subject, "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": now_s + int(lifetime_s), **claims}
        signed = f"{_part({'alg': 'RS256', 'kid': KEY_ID})}.{_part(body)}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_text(signature)}"

    def answer(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if self.clients.get(name) != secret or form.get("grant_type") != ["client_credentials"]:
            return 401, {"error": "invalid_client"}
        self.given += 1
        return 200, {"access_token": self.token(urllib.parse.unquote_plus(name)), "token_type": "Bearer"}


class Answering(Protocol):
    """url: set by `serving`. answer: HTTP's code, and a JSON object."""

    url: str

    def answer(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]: ...


A = TypeVar("A", bound=Answering)


@contextmanager
def serving(issuer: A) -> Iterator[A]:
    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            code, body = issuer.answer(self.headers["Authorization"], form)
            self.send_response(code)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answers)
    issuer.url = f"http://127.0.0.1:{server.server_port}/token"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _part(values: dict[str, Any]) -> str:
    return _text(json.dumps(values).encode())


def _number(value: int) -> str:
    return _text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
