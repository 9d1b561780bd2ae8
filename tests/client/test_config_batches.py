"""Changes of settings that wait share requests; each caller gets its own outcome, each resource keeps its order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.administration.config_batches import MAX_BYTES, MAX_REQUESTS, MAX_RESOURCES, ConfigBatches
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class Cluster:
    """Answers a request when it is told to. refused: names of topics whose change is refused."""

    def __init__(self) -> None:
        self.requests: list[list[tuple[str, str | None]]] = []  # (topic, value) of each change
        self.refused: set[str] = set()
        self._open: list[asyncio.Future[None]] = []

    async def send(self, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
        self.requests.append([(one.resource_name, one.configs[0].value) for one in request.resources])
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open.append(answered)
        await answered
        results = (
            AlterConfigsResult(
                resource_type=2,
                resource_name=one.resource_name,
                error_code=ErrorCode.INVALID_CONFIG if one.resource_name in self.refused else ErrorCode.NONE,
            )
            for one in request.resources
        )
        return IncrementalAlterConfigsResponse(results=tuple(results))

    @property
    def open(self) -> int:
        return len(self._open)

    async def answer(self, error: Exception | None = None, *, which: int = 0) -> None:
        """The request that has waited longest, or another one; and let everything that follows happen."""
        answered = self._open.pop(which)
        answered.set_exception(error) if error is not None else answered.set_result(None)
        await settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def change(topic: str, value: str = "1") -> AlterConfigsResource:
    configs = (AlterableConfig(name="retention.ms", value=value),)
    return AlterConfigsResource(resource_type=2, resource_name=topic, configs=configs)


Scene = Callable[[Cluster, Callable[..., "asyncio.Task[AlterConfigsResult]"]], Coroutine[Any, Any, None]]


def play(scene: Scene) -> None:
    async def run() -> None:
        cluster = Cluster()
        batches = ConfigBatches(cluster.send)
        loop = asyncio.get_running_loop()
        await scene(cluster, lambda topic, value="1": loop.create_task(batches.alter(change(topic, value))))
        assert batches.requests == len(cluster.requests)

    asyncio.run(run())


def test_changes_of_one_turn_go_together_and_later_ones_with_the_next_request() -> None:
    async def scene(cluster: Cluster, alter: Any) -> None:
        first = [alter("a"), alter("b")]
        await settle()
        assert cluster.requests == [[("a", "1"), ("b", "1")]]
        for number in range(MAX_REQUESTS - 1):
            first.append(alter(f"more-{number}"))
            await settle()
        later = [alter("c"), alter("d")]
        await settle()
        assert cluster.open == MAX_REQUESTS
        await cluster.answer()
        assert cluster.requests[-1] == [("c", "1"), ("d", "1")]
        while cluster.open:
            await cluster.answer()
        assert all([(await task).error_code == 0 for task in [*first, *later]])

    play(scene)


def test_a_resource_is_changed_in_the_order_of_the_calls() -> None:
    async def scene(cluster: Cluster, alter: Any) -> None:
        tasks = [alter("a", "1"), alter("a", "2"), alter("b"), alter("a", "3")]
        await settle()
        assert cluster.requests == [[("a", "1"), ("b", "1")]]
        await cluster.answer()
        assert cluster.requests[1:] == [[("a", "2")]]
        await cluster.answer()
        await cluster.answer()
        assert cluster.requests[2:] == [[("a", "3")]]
        assert all([(await task).error_code == 0 for task in tasks])

    play(scene)


def test_each_caller_gets_the_outcome_of_its_own_resource() -> None:
    async def scene(cluster: Cluster, alter: Any) -> None:
        cluster.refused = {"bad"}
        good, bad = alter("good"), alter("bad")
        await settle()
        await cluster.answer()
        assert ((await good).error_code, (await bad).error_code) == (0, ErrorCode.INVALID_CONFIG)

    play(scene)


def test_a_request_that_fails_fails_its_own_callers_only() -> None:
    async def scene(cluster: Cluster, alter: Any) -> None:
        lost = [alter("a"), alter("b")]
        await settle()
        kept = alter("c")
        await settle()
        await cluster.answer(ConnectionError("broke"))
        for task in lost:
            with pytest.raises(ConnectionError):
                await task
        await cluster.answer()
        assert (await kept).error_code == 0
        again = alter("a")
        await settle()
        await cluster.answer()
        assert (await again).error_code == 0

    play(scene)


def test_a_change_whose_caller_has_gone_is_not_sent() -> None:
    async def scene(cluster: Cluster, alter: Any) -> None:
        tasks = [alter("a"), alter("a", "2"), alter("a", "3")]
        await settle()
        tasks[1].cancel()
        await cluster.answer()
        assert cluster.requests == [[("a", "1")], [("a", "3")]]
        await cluster.answer()
        assert (await tasks[2]).error_code == 0

    play(scene)


def test_a_request_is_bounded_in_resources_and_in_bytes() -> None:
    async def scene(cluster: Cluster, alter: Any) -> None:
        tasks = [alter(f"t{number}") for number in range(MAX_RESOURCES + 1)]
        await settle()
        assert [len(request) for request in cluster.requests] == [MAX_RESOURCES, 1]
        await cluster.answer()
        await cluster.answer()
        large = [alter("x", "1" * MAX_BYTES), alter("y")]
        await settle()
        assert [len(request) for request in cluster.requests[2:]] == [1, 1]
        await cluster.answer()
        await cluster.answer()
        assert all([(await task).error_code == 0 for task in [*tasks, *large]])

    play(scene)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=20))
def test_every_change_is_sent_once_and_in_its_order(steps: list[tuple[str, int]]) -> None:
    """steps: a topic to change, and how many requests are answered after that, the newest first."""

    async def scene(cluster: Cluster, alter: Any) -> None:
        tasks = []
        for number, (topic, answers) in enumerate(steps):
            tasks.append(alter(topic, str(number)))
            await settle()
            for _ in range(min(answers, cluster.open)):
                await cluster.answer(which=-1)
        while cluster.open:
            await cluster.answer()
        await asyncio.gather(*tasks)
        sent = [one for request in cluster.requests for one in request]
        for topic in "abc":
            wanted = [str(number) for number, step in enumerate(steps) if step[0] == topic]
            assert [value for name, value in sent if name == topic] == wanted

    play(scene)
