"""Settings of a broker itself that change while it runs: which layer counts, and that each takes effect."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from broker_fakes import FakeContext, Fakes, image_of, usual_image
from replica_cluster import ReplicaCluster

from quorumlog.configs.live import PRODUCER_EXPIRATION, VERIFICATION
from quorumlog.messages.cluster import ConfigResource, DescribeConfigsRequest
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog_broker.api.handlers import HANDLERS
from quorumlog_broker.replicas.own_settings import own_setting
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, EMPTY
from quorumlog_storage.log.log import Log


def setting(name: str, value: str, broker: str = CLUSTER_DEFAULT) -> ConfigRecord:
    return ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=broker, name=name, value=value)


def test_that_of_the_broker_comes_before_that_of_all_and_of_the_file() -> None:
    assert own_setting(EMPTY, 1, PRODUCER_EXPIRATION, 7) == 7
    of_all = image_of([setting(PRODUCER_EXPIRATION, "8")])
    assert own_setting(of_all, 1, PRODUCER_EXPIRATION, 7) == 8
    of_one = image_of([setting(PRODUCER_EXPIRATION, "9", "1")], of_all)
    assert [own_setting(of_one, node, PRODUCER_EXPIRATION, 7) for node in (1, 2)] == [9, 8]
    strange = image_of([setting(PRODUCER_EXPIRATION, "soon")])
    assert own_setting(strange, 1, PRODUCER_EXPIRATION, 7) == 7, "of a newer controller"


def test_producers_expire_by_the_changed_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(Log, "expire_producers", lambda _log, _now_ms, expiration_ms: asked.append(expiration_ms))
    cluster = ReplicaCluster(nodes=(1,))
    cluster.create_topic((1,))
    cluster.wait_led(1)
    cluster.run_for(601_000)
    cluster.commit(setting(PRODUCER_EXPIRATION, "5000"))
    cluster.run_for(601_000)
    assert asked == [86_400_000, 5_000]


@pytest.mark.parametrize(("value", "verifies"), [(None, True), ("false", False), ("true", True)])
def test_verification_is_switched_while_the_broker_runs(value: str | None, verifies: bool) -> None:
    fakes = Fakes()
    transactions = fakes.services().transactions
    if value is not None:
        fakes.subscription.image = image_of([setting(VERIFICATION, value)], fakes.subscription.image)
    assert transactions.verifies is verifies


def test_what_has_no_effect_is_shown_once_it_is_set() -> None:
    fakes = Fakes()

    def shown() -> dict[str, Any]:
        request = DescribeConfigsRequest(resources=(ConfigResource(resource_type=BROKER_RESOURCE, resource_name="1"),))

        async def ask() -> Any:
            return await HANDLERS[DescribeConfigsRequest](fakes.services(), FakeContext(), request)

        return {one.name: one.value for one in asyncio.run(ask()).results[0].configs}

    assert "num.io.threads" not in shown()
    fakes.subscription.image = image_of([setting("num.io.threads", "16")], usual_image())
    assert shown()["num.io.threads"] == "16"
