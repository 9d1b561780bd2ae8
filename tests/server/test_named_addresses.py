"""Host names in `max.connections.per.ip.overrides`: looked up away from the loop, and again if nobody knows them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping

import pytest

from quorumlog_server.config.named_addresses import AGAIN_MS, Found, NamedAddresses
from quorumlog_server.edge.real_edges import look_up


class Names:
    """A resolver by hand, with a clock."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.asked: list[tuple[Collection[str], Found]] = []
        self.addresses = NamedAddresses(self._look_up, lambda: self.now_ms)

    def _look_up(self, names: Collection[str], told: Found) -> None:
        self.asked.append((names, told))

    def answer(self, found: Mapping[str, Collection[str]], number: int = -1) -> None:
        self.asked[number][1](found)


def test_addresses_need_no_resolver() -> None:
    names = Names()
    assert names.addresses.of("10.0.0.7:3,0:0:0:0:0:0:0:1:4,FE80::1:5") == {"10.0.0.7": 3, "::1": 4, "fe80::1": 5}
    assert names.addresses.of("") == {} and names.asked == []


def test_a_name_counts_for_all_its_addresses_once_it_is_found_and_is_asked_for_once() -> None:
    names, text = Names(), "a.example:3,10.0.0.7:1"
    assert names.addresses.of(text) == {"10.0.0.7": 1}
    names.answer({"a.example": ["10.0.0.8", "fe80::8", "10.0.0.7"]})
    names.now_ms = 10 * AGAIN_MS
    assert names.addresses.of(text) == {"10.0.0.7": 1, "10.0.0.8": 3, "fe80::8": 3}
    assert [asked for asked, _ in names.asked] == [("a.example",)]


def test_a_name_that_nobody_knows_is_told_and_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    names, text = Names(), "a.example:3,b.example:4"
    names.addresses.of(text)
    with caplog.at_level(logging.WARNING, "quorumlog.node"):
        names.answer({"a.example": [], "b.example": ["10.0.0.9"]})
    assert "nobody knows the address of a.example; max.connections.per.ip counts there" in caplog.text
    names.now_ms = AGAIN_MS - 1
    assert names.addresses.of(text) == {"10.0.0.9": 4} and len(names.asked) == 1
    names.now_ms = AGAIN_MS
    names.addresses.of(text)
    assert names.asked[1][0] == ("a.example",)
    names.answer({"a.example": ["10.0.0.8"]})
    assert names.addresses.of(text) == {"10.0.0.9": 4, "10.0.0.8": 3}


def test_an_answer_for_what_was_changed_meanwhile_counts_for_nothing() -> None:
    names = Names()
    names.addresses.of("a.example:3")
    names.addresses.of("a.example:9")
    names.answer({"a.example": ["10.0.0.8"]}, number=0)
    assert names.addresses.of("a.example:9") == {}
    names.answer({"a.example": ["10.0.0.8"]})
    assert names.addresses.of("a.example:9") == {"10.0.0.8": 9}


def test_the_machines_own_resolver() -> None:
    async def found() -> Mapping[str, Collection[str]]:
        told: asyncio.Future[Mapping[str, Collection[str]]] = asyncio.get_running_loop().create_future()
        look_up(("localhost", "no name at all"), told.set_result)
        return await told

    answer = asyncio.run(found())
    assert {"127.0.0.1", "::1"} & {*answer["localhost"]} and answer["no name at all"] == []
