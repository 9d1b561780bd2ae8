"""The metrics warn before a deleted topic is not remembered any more."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from immutables import Map

from quorumlog_quorum.metadata.deleted_topics import MAX_DELETED_TOPICS, DeletedTopic
from quorumlog_quorum.metadata.image import EMPTY
from quorumlog_server.metrics import quorum
from quorumlog_server.metrics.reading import Reading, Source


@pytest.mark.parametrize(
    ("count", "is_full"), [(0, 0), (MAX_DELETED_TOPICS - 1, 0), (MAX_DELETED_TOPICS, 1)], ids=["none", "nearly", "full"]
)
def test_the_set_of_remembered_deleted_topics(count: int, is_full: int) -> None:
    deleted = Map({number.to_bytes(16, "big"): DeletedTopic(f"t{number}", number) for number in range(count)})
    node: Any = SimpleNamespace(driver=None, loader=SimpleNamespace(image=replace(EMPTY, deleted=deleted)))
    out, nothing = Reading(), Any
    quorum.collect(Source(node, nothing, 0, 0), out)
    assert out.rows[quorum.DELETED] == {(): count}
    assert out.rows[quorum.DELETED_FULL] == {(): is_full}
