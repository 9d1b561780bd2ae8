"""How a client gets a token and when it gets the next one: requests, an endpoint of thirty lines, and files."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.security.http_answer import FetchError
from quorumlog.security.sasl.edge.fetching import ask_token, fetch_document, read_file
from quorumlog.security.sasl.mechanism import LoginError
from quorumlog.security.sasl.renewal import Renewal, RenewalRules
from quorumlog.security.sasl.token_request import (
    BearerToken,
    client_credentials_request,
    made_token,
    read_token_answer,
    read_token_file,
)
from quorumlog.security.secret import Secret
from tests.parts import few
from tests.security.sasl.tokens import NOW_MS, NOW_S, claims, signed

URL = "https://issuer.test/token"


# --- the request


def test_id_and_secret_are_standard_base64() -> None:
    """Not the alphabet of URLs: `???>>>` has both signs that differ."""
    request = client_credentials_request(URL, "id", Secret("???>>>"), "a b&c")
    assert request.headers["Authorization"].reveal() == "Basic aWQ6Pz8/Pj4+"
    assert request.body == b"grant_type=client_credentials&scope=a+b%26c"
    assert "Pz8" not in repr(request) and "a+b" not in repr(request)


def test_by_kafka_s_switch_they_are_form_encoded_first() -> None:
    request = client_credentials_request(URL, "i:d", Secret("p%+ ü/"), is_header_encoded=True)
    basic = base64.b64decode(request.headers["Authorization"].reveal().removeprefix("Basic "))
    assert basic == b"i%3Ad:p%25%2B+%C3%BC%2F"
    assert request.body == b"grant_type=client_credentials"


SIGNS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@settings(max_examples=few(100))
@given(SIGNS, SIGNS, st.booleans())
def test_any_secret_arrives(client_id: str, secret: str, is_encoded: bool) -> None:
    if not is_encoded and ":" in client_id:
        with pytest.raises(ValueError, match="header_urlencode"):
            client_credentials_request(URL, client_id, Secret(secret))
        return
    request = client_credentials_request(URL, client_id, Secret(secret), is_header_encoded=is_encoded)
    basic = base64.b64decode(request.headers["Authorization"].reveal().removeprefix("Basic "), validate=True).decode()
    got = basic.partition(":")[::2]
    assert tuple(map(unquote_plus, got) if is_encoded else got) == (client_id, secret)


BAD_URLS = [
    "http://issuer.test/token", "issuer.test", "", "file:///token", "https:///token", "https://h:port/token",
    "https://[h/token", "https://me:canary@h/token", "https://h/a b", "https://h/t\u00f6", "https://h/\x01",
]  # fmt: skip


@pytest.mark.parametrize("url", BAD_URLS)
def test_a_secret_goes_over_https_only(url: str) -> None:
    with pytest.raises(ValueError, match="token_endpoint_url") as refused:
        client_credentials_request(url, "id", Secret("canary"))
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(("client_id", "secret"), [("", "canary"), ("id", "")])
def test_half_of_the_credentials_is_an_error(client_id: str, secret: str) -> None:
    with pytest.raises(ValueError, match=r"client_(id|secret): set it"):
        client_credentials_request(URL, client_id, Secret(secret))


# --- the answer

ENDS = [
    ("a number", {"expires_in": 20}, NOW_MS + 20_000),
    ("a fraction", {"expires_in": 0.5}, NOW_MS + 500),
    ("text", {"expires_in": "20"}, NOW_MS + 20_000),
    ("none", {}, None),
    ("a truth", {"expires_in": True}, None),
    ("past", {"expires_in": -5}, None),
    ("beyond all time", {"expires_in": 1e300}, None),
]


@pytest.mark.parametrize(("told", "want"), [c[1:] for c in ENDS], ids=[c[0] for c in ENDS])
def test_when_an_opaque_token_ends(told: dict[str, Any], want: int | None) -> None:
    answer = json.dumps({"access_token": "opaque", **told}).encode()
    assert read_token_answer(200, answer, NOW_MS) == BearerToken(Secret("opaque"), want)


def test_a_jwt_ends_with_its_own_end_or_the_told_one() -> None:
    token = signed(claims(exp=NOW_S + 300))
    for expires_in, want_ms in [(20, 20_000), (900, 300_000)]:
        answer = json.dumps({"access_token": token, "expires_in": expires_in}).encode()
        assert read_token_answer(200, answer, NOW_MS).expires_ms == NOW_MS + want_ms


BAD_ANSWERS = [
    ("an error", 400, b'{"error":"invalid_client","error_description":"unknown client"}', "invalid_client: unknown"),
    ("an error with control characters", 400, b'{"error":"a\\u001b[31m"}', "x1b"),
    ("not JSON", 502, b"<html>canary</html>", "502"),
    ("not JSON at 200", 200, b"canary", "200"),
    ("a redirect", 302, b"{}", "302"),
    ("no token", 200, b'{"id_token":"canary"}', "access_token"),
    ("a token with a blank", 200, b'{"access_token":"canary canary"}', "access_token"),
    ("a token that is a list", 200, b'{"access_token":["canary"]}', "access_token"),
    ("endless", 200, b'{"access_token":"' + b"x" * 100_000, "200"),
    ("deep", 200, b"[" * 60_000, "200"),
]


@pytest.mark.parametrize(("status", "body", "why"), [c[1:] for c in BAD_ANSWERS], ids=[c[0] for c in BAD_ANSWERS])
def test_an_answer_without_a_token(status: int, body: bytes, why: str) -> None:
    with pytest.raises(LoginError) as refused:
        read_token_answer(status, body, NOW_MS)
    assert why in str(refused.value) and "canary" not in str(refused.value)
    assert str(refused.value).isprintable()


def test_a_file_holds_a_token_and_blanks() -> None:
    token = signed(claims())
    assert read_token_file(f"\n {token}\r\n".encode()) == BearerToken(Secret(token), NOW_MS + 300_000)
    for content in (b"", b"\n", b"canary canary", b"\xff", b"x" * 200_000):
        with pytest.raises(LoginError) as refused:
            read_token_file(content)
        assert "canary" not in str(refused.value)


# --- a real endpoint


class Endpoint(BaseHTTPRequestHandler):
    """Knows client `id` with the secret `s:e c+r/e%t`; /moved leads to another machine; /long does not end."""

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        basic = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        right = basic == "id:s:e c+r/e%t" and form == {"grant_type": ["client_credentials"], "scope": ["a b"]}
        if right:
            self.answer(200, {"access_token": "t", "expires_in": 20})
        else:
            self.answer(401, {"error": "invalid_client"})

    def do_GET(self) -> None:
        if self.path == "/long":
            self.answer(200, "x" * 300_000)
        elif self.path == "/moved":
            self.answer(302, {}, Location="http://169.254.169.254/secret")
        else:
            self.answer(200 if self.path == "/keys?v=1" else 404, {"keys": []})

    def answer(self, status: int, told: Any, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(json.dumps(told).encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(("secret", "want"), [("s:e c+r/e%t", "t"), ("wrong", None)])
def test_a_token_of_a_real_endpoint(endpoint: str, secret: str, want: str | None) -> None:
    request = client_credentials_request(f"{endpoint}/token", "id", Secret(secret), "a b")
    status, body = ask_token(request, None)
    if want is None:
        with pytest.raises(LoginError, match="401: 'invalid_client'"):
            read_token_answer(status, body, NOW_MS)
    else:
        assert read_token_answer(status, body, NOW_MS) == BearerToken(Secret(want), NOW_MS + 20_000)


def test_documents_are_fetched_without_redirects_and_up_to_a_limit(endpoint: str) -> None:
    assert json.loads(fetch_document(f"{endpoint}/keys?v=1", None)) == {"keys": []}
    for path, why in [("/moved", "302; a redirect is not followed"), ("/none", "404"), ("/long", "more than")]:
        with pytest.raises(FetchError, match=why):
            fetch_document(endpoint + path, None)


def test_an_endpoint_that_is_not_there_is_named(endpoint: str) -> None:
    with pytest.raises(FetchError, match=r"127\.0\.0\.1:1 gave no answer"):
        fetch_document("http://127.0.0.1:1/keys", None)


def test_an_endpoint_without_tls_gets_no_https_request(endpoint: str) -> None:
    with pytest.raises(FetchError, match="https://127"):
        fetch_document(endpoint.replace("http:", "https:") + "/keys", None, timeout_s=5)


def test_files_are_read_up_to_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "a b.json"
    file.write_bytes(b"12345")
    assert fetch_document(f"file://{tmp_path}/a%20b.json", None) == b"12345"
    with pytest.raises(FetchError, match="longer than 4"):
        read_file(str(file), 4)
    with pytest.raises(FetchError, match="No such file"):
        read_file(f"{file}.none")


# --- renewal


def renewal(**changes: Any) -> Renewal:
    return Renewal(RenewalRules(**changes), lambda: 0.0)


def token(life_ms: int | None) -> BearerToken:
    return BearerToken(Secret("t"), None if life_ms is None else NOW_MS + life_ms)


LIVES = [
    ("an hour: at four fifths", 3_600_000, 2_880_000),
    ("ten minutes: before the buffer", 600_000, 300_000),
    ("six minutes: the period and the buffer meet", 360_000, 60_000),
    ("shorter than both: neither holds", 300_000, 240_000),
    ("twenty seconds", 20_000, 16_000),
    ("an instant: not at once again", 10, 1_000),
    ("one that has ended", -5_000, 1_000),
    ("no end: look again", None, 60_000),
]


@pytest.mark.parametrize(("life_ms", "after_ms"), [c[1:] for c in LIVES], ids=[c[0] for c in LIVES])
def test_when_a_token_is_renewed(life_ms: int | None, after_ms: int) -> None:
    one = renewal()
    one.fetched(token(life_ms), NOW_MS)
    assert one.due_ms - NOW_MS == after_ms


def test_the_first_token_is_due_at_once() -> None:
    assert renewal().due_ms == 0 and renewal().usable(NOW_MS) is None


def test_while_the_endpoint_is_down_it_goes_on_also_after_the_end() -> None:
    one = Renewal(RenewalRules(), lambda: 0.5)
    one.fetched(token(20_000), NOW_MS)
    waits, now_ms = [], one.due_ms
    for _ in range(12):
        one.failed(now_ms)
        waits.append(one.due_ms - now_ms)
        now_ms = one.due_ms
    assert waits == [100, 200, 400, 800, 1600, 3200, 6400, *[10_000] * 5]
    assert one.usable(NOW_MS + 19_999) is not None and one.usable(NOW_MS + 20_000) is None
    one.fetched(BearerToken(Secret("u"), now_ms + 20_000), now_ms)
    assert one.usable(now_ms) == one.token
    one.failed(now_ms)
    assert one.due_ms - now_ms == 100


@settings(max_examples=few(200))
@given(st.integers(2_000, 10**9), st.floats(0, 1, exclude_max=True))
def test_a_token_is_renewed_before_it_ends_and_not_at_once(life_ms: int, fraction: float) -> None:
    one = Renewal(RenewalRules(), lambda: fraction)
    one.fetched(token(life_ms), NOW_MS)
    assert NOW_MS + 1_000 <= one.due_ms < NOW_MS + life_ms


def test_a_token_that_is_no_jwt_has_the_told_end() -> None:
    assert made_token(Secret("a.b.c"), 5).expires_ms == 5 and made_token(Secret("opaque"), None).expires_ms is None
