"""What happens in a cell, and what must come of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from logins import Driver, Failed, Session
from secured_cluster import QUOTA, World, topic_of
from security_matrix import (
    AIOKAFKA,
    ANSWER_S,
    EXPIRED,
    KAFKAJS,
    MUTUAL,
    NO_ACL,
    OAUTH,
    PLAIN_TO_TLS,
    REAUTH,
    RELOAD,
    REVOKED,
    RIGHT,
    SSL,
    THROTTLED,
    TLS_TO_PLAIN,
    WRONG_CA,
    WRONG_HOST,
    WRONG_PASSWORD,
    WRONG_USER,
    Cell,
)

SIZE = 10
LOGIN_FAILED = r"authenti|credential|sasl|certificate|handshake|ssl|tls"
# TLS 1.3: the node's alert comes after the client's handshake, and some drop it. kafkajs and aiokafka take
# the answer to a bad token for that to a good one, and ask on.
TOLD_LATE = r"closed|disconnect|eof|dial"
CERTIFICATE = r"certificate|ssl|tls|x509|verif"
MIXED_UP = r"ssl|tls|disconnect|closed|reset|eof|connect|time(d )?out|bootstrap|metadata|frame|dial"
DENIED = r"not.?authorized|authorization"
REFUSED = {  # situation -> what the error has in it
    WRONG_PASSWORD: LOGIN_FAILED, WRONG_USER: LOGIN_FAILED, WRONG_CA: CERTIFICATE,
    WRONG_HOST: rf"{CERTIFICATE}|host", EXPIRED: LOGIN_FAILED, PLAIN_TO_TLS: MIXED_UP, TLS_TO_PLAIN: MIXED_UP,
    NO_ACL: DENIED,
}  # fmt: skip
SESSIONS_S = 4.5  # of re-authentication: more than two sessions
THROTTLE_S = 1.0


def play(driver: Driver, world: World, cell: Cell) -> str:
    """Raises AssertionError, or Failed where it had to work. Returns the error that the application was told, or ""."""
    if cell.situation == EXPIRED and cell.protection == SSL:
        world.age(cell)
    opened: list[Session] = []

    def session() -> Session:
        opened.append(driver.open(world.login(cell)))
        return opened[-1]

    try:
        if cell.situation in REFUSED:
            wanted = REFUSED[cell.situation]
            is_lost = cell.protection == MUTUAL or (cell.family in (KAFKAJS, AIOKAFKA) and cell.protection == OAUTH)
            if is_lost and wanted == LOGIN_FAILED:
                wanted = f"{wanted}|{TOLD_LATE}"
            return refused(lambda: session().send(topic_of(cell), SIZE), wanted)
        return WORKS[cell.situation](session, world, cell)
    finally:
        for one in opened:
            one.close()


def refused(attempt: Callable[[], None], wanted: str) -> str:
    began_s = time.monotonic()
    try:
        attempt()
    except Failed as error:
        took_s = time.monotonic() - began_s
        assert took_s < ANSWER_S, f"{took_s:.1f} s: {error}"
        assert re.search(wanted, str(error), re.IGNORECASE), f"it is not clear: {error}"
        return str(error)
    raise AssertionError("it was served")


Open = Callable[[], Session]


def right(session: Open, _world: World, cell: Cell) -> str:
    client = session()
    client.send(topic_of(cell), SIZE)
    assert client.read(topic_of(cell)) in (SIZE, 0)
    return ""


def revoked(session: Open, world: World, cell: Cell) -> str:
    """The rule is gone at once, but may still be on its way to the broker."""
    client = session()
    client.send(topic_of(cell), SIZE)
    world.revoke(cell)

    def until_refused() -> None:
        until_s = time.monotonic() + ANSWER_S
        while time.monotonic() < until_s:
            client.send(topic_of(cell), SIZE)

    return refused(until_refused, DENIED)


def reload(session: Open, world: World, cell: Cell) -> str:
    """Who is connected stays so, and who comes anew is served, too."""
    before = session()
    before.send(topic_of(cell), SIZE)
    world.reload(cell)
    before.send(topic_of(cell), SIZE)
    before.close()
    session().send(topic_of(cell), SIZE)
    return ""


def reauth(session: Open, _world: World, cell: Cell) -> str:
    client, until_s = session(), time.monotonic() + SESSIONS_S
    while time.monotonic() < until_s:
        client.send(topic_of(cell), SIZE)
        time.sleep(0.1)  # between two requests, so that some come behind the end of a session
    return ""


def throttled(session: Open, _world: World, cell: Cell) -> str:
    """The first record is above the quota of ten seconds by so much that the second one waits for THROTTLE_S."""
    client = session()
    client.send(topic_of(cell), int(QUOTA * (10 + THROTTLE_S)))
    began_s = time.monotonic()
    client.send(topic_of(cell), SIZE)
    took_s = time.monotonic() - began_s
    assert 0.5 * THROTTLE_S < took_s < ANSWER_S, f"the second record took {took_s:.2f} s"
    return ""


WORKS = {RIGHT: right, REVOKED: revoked, RELOAD: reload, REAUTH: reauth, THROTTLED: throttled}
