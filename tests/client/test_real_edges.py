"""Clients on the real edges take every option in both forms, also `transport`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import quorumlog
from quorumlog.client import real_edges as edge
from quorumlog.client.errors import ConfigError

MADE_BY_APPLICATIONS = [quorumlog.AsyncProducer, quorumlog.AsyncConsumer, quorumlog.AsyncAdmin]


@pytest.mark.parametrize("make", [edge.producer, edge.consumer, edge.admin, *MADE_BY_APPLICATIONS])
def test_the_transport_is_chosen_by_keyword_or_in_the_config(make: Any) -> None:
    async def chosen(*config: dict[str, Any], **options: Any) -> str:
        client = make({"bootstrap.servers": "localhost:1", **(config[0] if config else {})}, **options)
        await client.close()
        return str(client.options.transport)

    assert asyncio.run(chosen()) == "auto"
    assert asyncio.run(chosen(transport="grpc")) == "grpc"
    assert asyncio.run(chosen({"transport": "grpc"})) == "grpc"
    assert asyncio.run(chosen({"transport": "grpc"}, transport="auto")) == "auto"
    with pytest.raises(ConfigError):
        asyncio.run(chosen(transport="pigeon"))


def test_an_application_makes_a_member_of_a_group_as_the_blocking_one_is_made() -> None:
    async def made() -> tuple[str, str]:
        async with quorumlog.AsyncConsumer(bootstrap_servers="localhost:1", group="billing", protocol="consumer") as it:
            return it.options.group_id, it.options.group_protocol

    assert asyncio.run(made()) == ("billing", "consumer")
