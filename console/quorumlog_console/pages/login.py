"""The form of the login, and the end of a session."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from quorumlog.security.host import is_loopback
from quorumlog_console.console import COOKIE, Console, console_of
from quorumlog_console.door import LoginFailed, log_in, takes_passwords
from quorumlog_console.guard import LOGIN_PATH
from quorumlog_console.layout import render
from quorumlog_console.trouble import trouble

FORM_COOKIE = "quorumlog_form"
FORM_S = 3_600
_OURS = re.compile(r"[0-9a-f]{64}")
FORM_TYPE = "application/x-www-form-urlencoded"


async def login(request: Request) -> Response:
    console = console_of(request)
    if console.asks is False:
        return RedirectResponse("/", 303)
    if not takes_passwords(console.options.client):
        return trouble(
            request, 403, "This console cannot ask you who you are",
            "The cluster asks its clients who they are, but the listener that the console was given takes no "
            "passwords. Start the console with one that does: quorumlog console --bootstrap-servers HOST:PORT "
            "-X security.protocol=SASL_SSL.",
        )  # fmt: skip
    if not _is_private(request):
        return trouble(
            request, 403, "This connection can be read by others",
            "A password is taken over HTTPS, or from the machine on which the console runs: start it with "
            "--tls-certificate and --tls-key, or open it through an SSH tunnel.",
        )  # fmt: skip
    if request.method != "POST":
        return _form(request, console, _local(request.query_params.get("next", "/")))
    return await _tried(request, console)


async def _tried(request: Request, console: Console) -> Response:
    form = await _fields(request, console.limits.form_bytes)
    if form is None:
        return trouble(request, 413, "This is not the form of the login", "Load the page of the login again.")
    target = _local(form.get("next", "/"))
    if not console.forms.fits(request.cookies.get(FORM_COOKIE, ""), form.get("token", "")) or not _is_same(request):
        return _form(request, console, target, "This form is too old, or was not made here. Try again.", 403)
    address, now_ms = request.client.host if request.client else "", console.now_ms()
    if console.failures.is_full(address, now_ms):
        return _form(request, console, target, "Too many logins have failed. Wait a minute.", 429)
    user, password = form.get("user", ""), form.get("password", "")
    console.failures.note(address, now_ms)
    try:
        client = await log_in(console.options.client, user, password, console.limits.answer_ms)
    except LoginFailed as error:
        return _form(request, console, target, str(error), 401, user)
    console.failures.forget(address, now_ms)
    if old := request.cookies.get(COOKIE):
        console.sessions.end(old)
    token = console.begin_session(user, client)
    response = RedirectResponse(target, 303)
    seconds = console.limits.session_ms // 1000
    response.set_cookie(COOKIE, token, seconds, httponly=True, samesite="strict", secure=_is_https(request))
    response.delete_cookie(FORM_COOKIE, httponly=True, samesite="strict")
    return response


async def logout(request: Request) -> Response:
    """The cookie of a session is sent by links of this console only (SameSite=Strict), so nobody else ends it."""
    console = console_of(request)
    if token := request.cookies.get(COOKIE):
        console.sessions.end(token)
    response = RedirectResponse(LOGIN_PATH, 303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=_is_https(request))
    return response


def _form(
    request: Request, console: Console, target: str, problem: str = "", status: int = 200, user: str = ""
) -> Response:
    cookie = request.cookies.get(FORM_COOKIE, "")
    if not _OURS.fullmatch(cookie):  # what others have set is not sent back
        cookie = console.forms.new_cookie()
    response = render(
        request, "login.html", "Log in", None, status,
        problem=problem, user=user, target=target, token=console.forms.of(cookie),
    )  # fmt: skip
    response.set_cookie(FORM_COOKIE, cookie, FORM_S, httponly=True, samesite="strict", secure=_is_https(request))
    return response


async def _fields(request: Request, limit: int) -> dict[str, str] | None:
    """None: it is no form, or a large one. A field that is there twice counts as its last one."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
        return None
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                return None
    except ClientDisconnect:
        return None
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=10, errors="strict")
    except ValueError:
        return None
    return {name: values[-1] for name, values in fields.items()}


def _local(target: str) -> str:
    """Only a path of this console: a link to the login must lead nowhere else."""
    is_path = target.startswith("/") and not target.startswith(("//", "/\\"))
    return target if is_path and target.isprintable() and len(target) < 2_000 else "/"


def _is_same(request: Request) -> bool:
    """A browser names the page that a form was on."""
    origin = request.headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")
    except ValueError:
        return False


def _is_https(request: Request) -> bool:
    return request.url.scheme == "https"


def _is_private(request: Request) -> bool:
    return _is_https(request) or (request.client is not None and is_loopback(request.client.host))
