"""What a Spark worker keeps of a task, and what it closes: over connections that tell what is done with them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

import pytest

from quorumlog.client import real_edges as edge
from quorumlog.client.errors import ConfigError
from quorumlog.rpc.caller_security import PLAIN_TEXT, CallerSecurity
from quorumlog.rpc.transport import Address, NotDelivered, NotServed, OutcomeUnknown
from quorumlog.spark.session import kept_connections
from quorumlog.spark.session.kept_connections import MOST_SECURITIES, KeptConnections, Lease, kept_here
from tests.client.virtual_time import run

HERE, THERE = Address("b1", 9092), Address("b2", 9092)
KEEP_MS = 1_000
LONG_MS = 10_000


class Real:
    """A connection of a transport. answers: of its calls, one after the other; an exception is raised."""

    def __init__(self, address: Address, client_id: str) -> None:
        self.address, self.client_id = address, client_id
        self.answers: list[Any] = []
        self.can_rest = True
        self.rested = self.closed = 0
        self._told: list[Callable[[], None]] = []

    def call(self, request: Any, timeout_ms: int) -> Awaitable[Any]:
        async def answer() -> Any:
            found = self.answers.pop(0) if self.answers else request
            if isinstance(found, Exception):
                raise found
            return found

        return answer()

    def begin(self, request: Any, timeout_ms: int, ended: Any) -> Any:
        found = self.answers.pop(0)
        ended(*((None, found) if isinstance(found, Exception) else (found, None)))
        return lambda: None

    def on_closed(self, callback: Callable[[], None]) -> None:
        self._told.append(callback)

    def breaks(self) -> None:
        self.can_rest = False
        for callback in self._told:
            callback()

    def rest(self) -> bool:
        self.rested += 1
        return self.can_rest

    async def close(self) -> None:
        self.closed += 1


class World:
    """kinds: of the transports that were made. made: their connections, in order."""

    def __init__(self, most: int = 3) -> None:
        self.kinds: list[str] = []
        self.made: list[Real] = []
        self.kept = KeptConnections(lambda: int(self.loop_ms()), most)

    @staticmethod
    def loop_ms() -> float:
        return asyncio.get_running_loop().time() * 1000

    def make_transport(self, kind: str = "auto", security: CallerSecurity = PLAIN_TEXT) -> Any:
        self.kinds.append(kind)
        return self

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> Real:
        assert not internal
        self.made.append(Real(address, client_id))
        return self.made[-1]

    def lease(self, keep_ms: int = KEEP_MS, kind: str = "auto", client: Mapping[str, Any] | None = None) -> Any:
        return Lease(keep_ms, lambda: self.kept).of_kind(kind, client or {})

    async def task(
        self,
        *addresses: Address,
        kind: str = "auto",
        client_id: str = "me",
        keep_ms: int = KEEP_MS,
        client: Mapping[str, Any] | None = None,
    ) -> None:
        """Comes to its end."""
        lease = self.lease(keep_ms, kind, client)
        connections = [lease.connect(one, internal=False, client_id=client_id) for one in addresses]
        for one in connections:
            assert await one.call("asked", LONG_MS) == "asked"
        for one in connections:
            await one.close()

    @property
    def open(self) -> list[Address]:
        return [one.address for one in self.made if not one.closed]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(edge, "make_transport", made.make_transport)
    return made


def played(scenario: Coroutine[Any, Any, None]) -> None:
    run(scenario)


def test_the_next_task_has_the_connections_of_the_one_before(world: World) -> None:
    async def scenario() -> None:
        for _ in range(5):
            await world.task(HERE, THERE)
        assert world.open == [HERE, THERE] and len(world.made) == 2
        assert [one.rested for one in world.made] == [5, 5], "streams are given up at the end of each task"

    played(scenario())


ADA: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "SCRAM-SHA-512",
    "sasl_username": "ada",
    "sasl_password": "s3cret",
}
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("another transport", {"kind": "grpc"}),
    ("another client", {"client_id": "you"}),
    ("nobody", {"client": {}}),
    ("another user", {"client": {**ADA, "sasl_username": "bob"}}),
    ("another password", {"client": {**ADA, "sasl_password": "other"}}),
    ("another mechanism", {"client": {**ADA, "sasl_mechanism": "PLAIN"}}),
]


@pytest.mark.parametrize("other", [case[1] for case in OTHERS], ids=[case[0] for case in OTHERS])
def test_what_differs_is_not_shared(world: World, other: dict[str, Any]) -> None:
    async def scenario() -> None:
        await world.task(HERE, client=ADA)
        await world.task(HERE, **{"client": ADA, **other})
        assert world.open == [HERE, HERE] and len(world.made) == 2
        await world.task(HERE, client=dict(reversed(ADA.items())), keep_ms=0)
        assert len(world.made) == 2, "the same user has its connection again"

    played(scenario())


def test_what_a_login_has_fetched_is_kept_for_its_user_only(world: World) -> None:
    """A token of an endpoint serves the next task, and the options are not kept as they are."""

    async def scenario() -> None:
        first, second = world.kept.security_of(ADA), world.kept.security_of({**ADA, "linger_ms": 5})
        assert first[1] is second[1] and first[0] == second[0] and b"s3cret" not in first[0]
        for number in range(MOST_SECURITIES):
            world.kept.security_of({**ADA, "sasl_username": f"user {number}"})
        assert world.kept.security_of(ADA)[1] is not first[1], "there is a limit"
        with pytest.raises(ConfigError, match="sasl_password is set"):
            world.kept.security_of({"sasl_password": "s3cret"})

    played(scenario())


def test_two_tasks_at_once_have_connections_of_their_own(world: World) -> None:
    async def scenario() -> None:
        one, two = (world.lease().connect(HERE, internal=False, client_id="me") for _ in range(2))
        assert len(world.made) == 2
        await one.close()
        await two.close()
        assert len(world.kept) == 2

    played(scenario())


ERRORS = [
    ("the call may have been carried out", OutcomeUnknown("silence"), False),
    ("the peer has not seen it", NotDelivered("refused"), False),
    ("the peer serves no such request", NotServed("a Kafka has no streams"), True),
]


@pytest.mark.parametrize("way", ["call", "begin"])
@pytest.mark.parametrize(("error", "is_kept"), [case[1:] for case in ERRORS], ids=[case[0] for case in ERRORS])
def test_a_connection_is_not_kept_after_an_error(world: World, error: Exception, is_kept: bool, way: str) -> None:
    async def scenario() -> None:
        lent = world.lease().connect(HERE, internal=False, client_id="me")
        world.made[0].answers = [error, "the second answer"]
        if way == "call":
            with pytest.raises(type(error)):
                await lent.call("asked", LONG_MS)
        else:
            told: list[Any] = []
            lent.begin("asked", LONG_MS, lambda *found: told.append(found))
            assert told == [(None, error)]
        assert await lent.call("asked again", LONG_MS) == "the second answer"
        await lent.close()
        assert (world.made[0].closed, len(world.kept)) == ((0, 1) if is_kept else (1, 0))

    played(scenario())


def test_a_task_that_was_cut_off_leaves_nothing(world: World) -> None:
    async def scenario() -> None:
        lease = Lease(KEEP_MS, lambda: world.kept)
        lent = lease.of_kind("auto", {}).connect(HERE, internal=False)
        lease.spoil()
        await lent.close()
        assert (world.open, len(world.kept)) == ([], 0)

    played(scenario())


def test_a_connection_that_cannot_rest_is_closed(world: World) -> None:
    """An answer is still to come, which must not be taken for one of the next task."""

    async def scenario() -> None:
        lent = world.lease().connect(HERE, internal=False)
        world.made[0].can_rest = False
        await lent.close()
        assert (world.open, len(world.kept)) == ([], 0)

    played(scenario())


def test_a_connection_that_breaks_while_it_waits_is_closed_and_not_used(world: World) -> None:
    async def scenario() -> None:
        await world.task(HERE)
        world.made[0].breaks()
        assert len(world.kept) == 0
        await world.task(HERE)
        await asyncio.sleep(0)
        assert [one.closed for one in world.made] == [1, 0]

    played(scenario())


def test_it_waits_so_long_and_no_longer(world: World) -> None:
    async def scenario() -> None:
        await world.task(HERE)
        await asyncio.sleep(0.9)
        await world.task(HERE, THERE)  # used again, so its time begins anew
        await asyncio.sleep(0.9)
        assert world.open == [HERE, THERE]
        await asyncio.sleep(0.2)
        assert (world.open, len(world.kept), len(world.made)) == ([], 0, 2)

    played(scenario())


def test_no_more_wait_than_the_limit_says(world: World) -> None:
    async def scenario() -> None:
        addresses = [Address(f"b{number}", 9092) for number in range(10)]
        await world.task(*addresses)
        assert world.open == addresses[-3:] and len(world.kept) == 3

    played(scenario())


def test_none_waits_where_the_option_says_so(world: World) -> None:
    async def scenario() -> None:
        await world.task(HERE, keep_ms=0)
        assert (world.open, len(world.kept), world.made[0].rested) == ([], 0, 0)

    played(scenario())


def test_a_client_that_was_closed_cannot_use_what_it_gave_back(world: World) -> None:
    async def scenario() -> None:
        lent = world.lease().connect(HERE, internal=False)
        await lent.close()
        await lent.close()
        with pytest.raises(NotDelivered, match="given back"):
            await lent.call("asked", LONG_MS)
        told: list[Any] = []
        lent.begin("asked", LONG_MS, lambda *found: told.append(found))
        assert isinstance(told[0][1], NotDelivered)
        assert len(world.kept) == 1, "it was given back once"

    played(scenario())


def test_all_that_wait_can_be_closed(world: World) -> None:
    async def scenario() -> None:
        await world.task(HERE, THERE)
        await world.kept.close()
        assert (world.open, len(world.kept)) == ([], 0)

    played(scenario())


def test_a_child_of_a_fork_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_connections, "_kept", None)
    before = kept_here()
    assert kept_here() is before
    child = os.fork()
    if child == 0:
        os._exit(0 if kept_here() is not before and kept_here().pid == os.getpid() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kept_here() is before
