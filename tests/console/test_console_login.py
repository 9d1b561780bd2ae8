"""Where the cluster asks its clients who they are, the console does: logins, sessions, and what each user may see."""

from __future__ import annotations

import asyncio
import dataclasses
import html
import re
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest
from console_world import Browse, T, browse, options

from quorumlog.client.administration.users import DeleteCredential, SetPassword
from quorumlog.client.asynchronous import AsyncAdmin
from quorumlog.messages.cluster import ConfigDescription, DescribedConfig
from quorumlog.security.acl.content import AclContent
from quorumlog.security.sasl.scram_mechanism import ScramMechanism
from quorumlog.settings.rights import AUTHORIZER
from quorumlog_console.console import COOKIE, Console
from quorumlog_console.door import says_asks
from quorumlog_console.options import Limits
from tests.scenarios.one_node import LANE, ProtectedNode

NAME, PASSWORD = "ada <i>", "a long and random one"
SECURED = {
    "listeners": "CLIENT://127.0.0.1:0,GRPC://127.0.0.1:0,SECURE://127.0.0.1:0,INTERNAL://127.0.0.1:{internal}",
    "listener.security.protocol.map": "SECURE:SASL_PLAINTEXT",
    "listener.name.secure.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "allow.anonymous.listeners": "CLIENT,GRPC",
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:ANONYMOUS",
}
BY_PASSWORD = {"security_protocol": "SASL_PLAINTEXT"}
QUICK = Limits(look_every_ms=50)


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProtectedNode]:
    made = ProtectedNode(tmp_path_factory.mktemp("login"), SECURED)
    made.do(_prepare(made))
    yield made
    made.close()


async def _prepare(at: ProtectedNode) -> None:
    async with AsyncAdmin(bootstrap_servers=str(at.node.addresses[LANE])) as admin:
        for name in ("open", "secret"):
            await admin.create_topic(name, 1, 1)
        changes = [SetPassword(name, PASSWORD, ScramMechanism.SHA_256) for name in (NAME, "gone")]
        assert all(not one.error for one in (await admin.alter_user_scram_credentials(changes)).values())
        await admin.create_acls([AclContent(2, "open", 3, f"User:{NAME}", "*", 8, 3)])  # Describe


def visit(at: ProtectedNode, do: Browse[T], limits: Limits = QUICK, peer: str = "127.0.0.1") -> T:
    return browse(at, options(at, "SECURE", client=BY_PASSWORD, limits=limits), do, peer)


async def log_in(
    browser: httpx.AsyncClient, user: str = NAME, password: str = PASSWORD, path: str = "/topics"
) -> httpx.Response:
    form = await browser.get("/login", params={"next": path})
    return await browser.post("/login", data=fields(form.text) | {"user": user, "password": password})


def fields(page: str) -> dict[str, str]:
    return {name: html.unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="(.*?)"', page)}


async def topics_of(browser: httpx.AsyncClient) -> list[str]:
    async with asyncio.timeout(10):
        while (page := await browser.get("/topics")).status_code == 502:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return re.findall(r'href="/topics/([^"?]+)"', page.text)


def test_every_page_asks_for_a_login_first_on_loopback_too(at: ProtectedNode) -> None:
    async def do(browser: httpx.AsyncClient, console: Console) -> None:
        for path in ("/", "/topics", "/topics/open?x=1&y", "/groups/one?id=g", "/settings", "/rights", "/events"):
            answer = await browser.get(path)
            assert answer.status_code == 303, path
            assert answer.headers["location"] == f"/login?next={quote(path, safe='')}"
        assert (await browser.get("/static/console.css")).status_code == 200

    visit(at, do)


def test_who_logs_in_sees_what_that_user_may_see(at: ProtectedNode) -> None:
    async def do(browser: httpx.AsyncClient, console: Console) -> None:
        answer = await log_in(browser, path="/topics?q=o")
        assert (answer.status_code, answer.headers["location"]) == (303, "/topics?q=o")
        cookie = next(one for one in answer.headers.get_list("set-cookie") if one.startswith(COOKIE))
        assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower() and PASSWORD not in cookie
        assert await topics_of(browser) == ["open"], "the other topic is not described to this user"
        assert (await browser.get("/topics/secret")).status_code == 404
        topic = await browser.get("/topics/open")
        assert topic.status_code == 200 and "The settings are not shown" in topic.text
        assert "User:ada &lt;i&gt;" in topic.text and "<i>" not in topic.text
        quorum, rights = await browser.get("/quorum"), await browser.get("/rights")
        assert "it needs the right to Describe the cluster" in quorum.text
        assert rights.text.count("are not shown") + rights.text.count("is not shown") == 4
        for page in (quorum, rights, topic):
            assert PASSWORD not in page.text
        assert (await browser.get("/logout")).headers["location"] == "/login"
        assert (await browser.get("/topics")).status_code == 303
        assert len(console.sessions) == 0

    visit(at, do)


@pytest.mark.parametrize(("user", "password"), [(NAME, "wrong"), ("nobody", PASSWORD), ("", ""), ("a\0b", "x")])
def test_a_wrong_password_begins_no_session_and_says_not_what_is_wrong(
    at: ProtectedNode, user: str, password: str
) -> None:
    async def do(browser: httpx.AsyncClient, console: Console) -> None:
        answer = await log_in(browser, user, password)
        assert answer.status_code == 401 and "does not take this user and password" in answer.text
        assert COOKIE not in browser.cookies and len(console.sessions) == 0

    visit(at, do)


def test_a_form_from_elsewhere_is_refused(at: ProtectedNode) -> None:
    async def do(browser: httpx.AsyncClient, console: Console) -> None:
        form = fields((await browser.get("/login")).text)
        given = {"user": NAME, "password": PASSWORD}
        for changed in ({"token": "0" * 64}, {"token": ""}, {}):
            sent = form | given | changed
            headers = {} if changed else {"origin": "http://evil.example"}
            answer = await browser.post("/login", data=sent, headers=headers)
            assert answer.status_code == 403 and COOKIE not in browser.cookies
        browser.cookies.clear()
        assert (await browser.post("/login", data=form | given)).status_code == 403
        assert (await browser.post("/login", json=form | given)).status_code == 413
        assert (await browser.post("/login", data=given | {"token": "x" * 9_000})).status_code == 413

    visit(at, do)


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/\\evil.example", "a", "/a\nb", ""])
def test_a_login_leads_nowhere_else(at: ProtectedNode, target: str) -> None:
    async def do(browser: httpx.AsyncClient, console: Console) -> str:
        return (await log_in(browser, path=target)).headers["location"]

    assert visit(at, do) == "/"


def test_logins_that_fail_are_limited(at: ProtectedNode) -> None:
    async def do(browser: httpx.AsyncClient, console: Console) -> list[int]:
        found = [(await log_in(browser, password="wrong")).status_code for _ in range(3)]
        return [*found, (await log_in(browser)).status_code]

    assert visit(at, do, dataclasses.replace(QUICK, failures_a_minute=2)) == [401, 401, 429, 429]


def test_a_password_is_not_taken_where_others_can_read_it(at: ProtectedNode) -> None:
    async def do(browser: httpx.AsyncClient, console: Console) -> httpx.Response:
        return await browser.get("/login", headers={"x-forwarded-proto": "https", "x-forwarded-for": "127.0.0.1"})

    answer = visit(at, do, peer="192.0.2.7")
    assert answer.status_code == 403 and 'type="password"' not in answer.text


def test_a_session_ends_when_the_cluster_takes_its_user_no_more(at: ProtectedNode) -> None:
    async def do(browser: httpx.AsyncClient, console: Console) -> None:
        assert (await log_in(browser, "gone")).status_code == 303
        assert await topics_of(browser) == []
        async with AsyncAdmin(bootstrap_servers=str(at.node.addresses[LANE])) as admin:
            await admin.alter_user_scram_credentials([DeleteCredential("gone", ScramMechanism.SHA_256)])
        assert (await log_in(browser, "gone")).status_code == 401

    visit(at, do)


def test_a_listener_without_passwords_is_said_to_be_the_wrong_one(at: ProtectedNode) -> None:
    """The cluster asks on another listener, so its open one shows nothing here."""

    async def do(browser: httpx.AsyncClient, console: Console) -> list[httpx.Response]:
        async with asyncio.timeout(10):
            while console.asks is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return [await browser.get("/topics"), await browser.get("/login")]

    topics, form = browse(at, options(at, LANE), do)
    assert topics.status_code == 303
    assert form.status_code == 403 and "takes no passwords" in form.text


OPEN = {"listeners": "CLIENT://:1,INTERNAL://:2", "listener.security.protocol.map": "", "ssl.client.auth": "none"}
CASES = [
    ("open", {}, False),
    ("an authorizer", {"authorizer.class.name": "x"}, True),
    ("SASL by its name", {"listeners": "SASL_SSL://:1"}, True),
    ("SASL by the map", {"listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT"}, True),
    (
        "a controller's",
        {"listener.security.protocol.map": "INTERNAL:SASL_SSL", "controller.listener.names": "internal"}, False,
    ),
    ("TLS alone", {"listener.security.protocol.map": "CLIENT:SSL"}, False),
    ("certificates", {"listener.security.protocol.map": "CLIENT:SSL", "ssl.client.auth": "required"}, True),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "asks"), [one[1:] for one in CASES], ids=[one[0] for one in CASES])
def test_what_the_settings_of_a_broker_say(changes: dict[str, str], asks: bool) -> None:
    configs = tuple(DescribedConfig(name=name, value=value, source=4) for name, value in (OPEN | changes).items())
    assert says_asks(ConfigDescription(resource_type=4, resource_name="1", configs=configs)) is asks
