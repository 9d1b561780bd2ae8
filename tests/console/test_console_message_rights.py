"""Messages need the right Read on their topic; who may only Describe it is told so, on every page of them."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from test_console_login import NAME, PASSWORD, SECURED, log_in, topics_of, visit
from test_console_messages import listening

from quorumlog.client.administration.users import SetPassword
from quorumlog.client.asynchronous import AsyncAdmin, AsyncProducer
from quorumlog.security.acl.content import AclContent
from quorumlog.security.sasl.scram_mechanism import ScramMechanism
from quorumlog_console.console import Console
from tests.scenarios.one_node import LANE, ProtectedNode

ONE_MECHANISM = {"listener.name.secure.sasl.enabled.mechanisms": "SCRAM-SHA-256"}
DESCRIBE, READ = 8, 3
SECRET = b"only for readers"


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProtectedNode]:
    made = ProtectedNode(tmp_path_factory.mktemp("readers"), {**SECURED, **ONE_MECHANISM})
    made.do(_prepare(made))
    yield made
    made.close()


async def _prepare(at: ProtectedNode) -> None:
    servers = str(at.node.addresses[LANE])
    async with AsyncAdmin(bootstrap_servers=servers) as admin, AsyncProducer(bootstrap_servers=servers) as producer:
        for name in ("read", "described", "hidden"):
            await admin.create_topic(name, 1, 1)
            await producer.send(name, SECRET)
        await producer.flush()
        changes = [SetPassword(NAME, PASSWORD, ScramMechanism.SHA_256)]
        assert all(not one.error for one in (await admin.alter_user_scram_credentials(changes)).values())
        rules = [("read", READ), ("described", DESCRIBE)]
        await admin.create_acls([AclContent(2, name, 3, f"User:{NAME}", "*", right, 3) for name, right in rules])


def test_messages_need_read(at: ProtectedNode) -> None:
    async def do(browser: httpx.AsyncClient, _: Console) -> None:
        assert (await browser.get("/topics/read/messages")).status_code == 303
        await log_in(browser)
        await topics_of(browser)
        read = await browser.get("/topics/read/messages")
        assert read.status_code == 200 and SECRET.decode() in read.text
        for path in ("", "/one?partition=0&offset=0", "/bytes?partition=0&offset=0"):
            refused = await browser.get(f"/topics/described/messages{path}")
            assert refused.status_code == 403, path
            assert (
                "needs the right Read on topic described" in refused.text
                and "acl create topic:described" in refused.text
            )
            assert SECRET.decode() not in refused.text
            hidden = await browser.get(f"/topics/hidden/messages{path}")
            assert hidden.status_code in (403, 404) and SECRET.decode() not in hidden.text

    visit(at, do)


def test_a_tail_needs_read_and_ends_with_its_session(at: ProtectedNode) -> None:
    async def do(browser: httpx.AsyncClient, console: Console) -> None:
        async with listening(browser, "/topics/read/messages/stream") as nobody:
            assert "Log in again" in nobody.of("end")[0]["why"]
        await log_in(browser)
        await topics_of(browser)
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        async with listening(browser, "/topics/described/messages/stream", cookie=cookie) as refused:
            await _produce(at, "described")
            await refused.until(lambda one: bool(one.of("end")))
            assert "needs the right Read on topic described" in refused.of("end")[0]["why"]
            assert refused.of("record") == []
        async with listening(browser, "/topics/read/messages/stream", cookie=cookie) as tail:
            await _produce(at, "read")
            await tail.until(lambda one: bool(one.of("record")))
            assert urlsplit((await browser.get("/logout")).headers["location"]).path
            await tail.until(lambda one: bool(one.of("end")))
            assert "session is over" in tail.of("end")[0]["why"]

    visit(at, do)


async def _produce(at: ProtectedNode, topic: str) -> None:
    async with AsyncProducer(bootstrap_servers=str(at.node.addresses[LANE])) as producer:
        await producer.send(topic, SECRET)
        await producer.flush()
