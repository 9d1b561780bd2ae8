"""The blocking clients that are generated: fresh, complete, and with iterables read in the caller's thread."""

from __future__ import annotations

import importlib
import inspect

import generate_blocking as generator
import pytest

from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.blocking_admin import Admin
from quorumlog.client.blocking_consumer import Consumer
from quorumlog.client.blocking_joint import Joint
from quorumlog.client.blocking_producer import Producer
from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.joint import AsyncJoint
from quorumlog.client.producer import AsyncProducer


def test_the_blocking_clients_are_fresh() -> None:
    pytest.importorskip("ruff")
    assert [client.target for client in generator.CLIENTS if generator.stale(client)] == []


@pytest.mark.parametrize(
    ("blocking", "asynchronous"),
    [(Admin, AsyncAdmin), (Joint, AsyncJoint), (Consumer, AsyncConsumer), (Producer, AsyncProducer)],
)
def test_each_generated_method_has_the_same_signature(blocking: type, asynchronous: type) -> None:
    generated = {name: one for name, one in vars(blocking).items() if not name.startswith("_")}
    assert generated
    for name, own in generated.items():
        method = inspect.getattr_static(asynchronous, name)
        assert own.__doc__ == method.__doc__, name
        if isinstance(own, property):
            own, method = own.fget, method.fget
        assert not inspect.iscoroutinefunction(own)
        assert list(inspect.signature(own).parameters) == list(inspect.signature(method).parameters), name
        assert inspect.signature(own).return_annotation == inspect.signature(method).return_annotation, name


@pytest.mark.parametrize("client", generator.CLIENTS, ids=lambda client: client.name)
def test_each_public_method_is_there_or_left_out_by_name(client: generator.Client) -> None:
    """Also what a base has by hand."""
    blocking = getattr(importlib.import_module(client.target), client.name)
    asynchronous = getattr(importlib.import_module(client.source), client.asynchronous)
    public = {name for name in dir(asynchronous) if not name.startswith("_")}
    assert public - set(dir(blocking)) == client.left_out


def test_an_iterable_argument_is_read_by_the_caller() -> None:
    text = generator.generated(generator.CLIENTS[0])
    assert "self._client.create_topics(list(topics), " in " ".join(text.split()).replace("( ", "(")
    assert "list(partitions) if partitions is not None else None" in text
