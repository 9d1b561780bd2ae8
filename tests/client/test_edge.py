"""Clients on the real edges take every option in both forms, also `transport`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quorumlog.client import edge
from quorumlog.client.errors import ConfigError


@pytest.mark.parametrize("make", [edge.producer, edge.consumer, edge.admin])
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
