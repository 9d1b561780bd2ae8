"""The blocking clients that are generated: fresh, complete, and with iterables read in the caller's thread."""

from __future__ import annotations

import inspect

import generate_blocking as generator
import pytest

from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.blocking_admin import Admin
from quorumlog.client.blocking_joint import Joint
from quorumlog.client.joint import AsyncJoint


def test_the_blocking_clients_are_fresh() -> None:
    pytest.importorskip("ruff")
    assert [client.target for client in generator.CLIENTS if generator.stale(client)] == []


@pytest.mark.parametrize(("blocking", "asynchronous"), [(Admin, AsyncAdmin), (Joint, AsyncJoint)])
def test_each_public_method_has_the_same_signature(blocking: type, asynchronous: type) -> None:
    for name, method in inspect.getmembers(asynchronous, inspect.isfunction):
        if not name.startswith("_"):
            own = getattr(blocking, name)
            assert not inspect.iscoroutinefunction(own)

            assert list(inspect.signature(own).parameters) == list(inspect.signature(method).parameters), name
            assert inspect.signature(own).return_annotation == inspect.signature(method).return_annotation, name
            if name != "close":
                assert own.__doc__ == method.__doc__, name


def test_an_iterable_argument_is_read_by_the_caller() -> None:
    text = generator.generated(generator.CLIENTS[0])
    assert "self._client.create_topics(list(topics), validate_only=validate_only)" in text
    assert "list(partitions) if partitions is not None else None" in text
