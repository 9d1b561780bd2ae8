"""Requests that name a thing twice, beside another that is denied: each part has an answer, and no node ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from test_rules_on_a_node import GROUP, PREFIXED, RULES_ON, TOPIC, add, ask, rule

from quorumlog.messages import cluster
from quorumlog.security.authorizer import Operation, ResourceType
from quorumlog.wire.protocol.apis import BY_REQUEST
from tests.scenarios.one_node import CALL_MS, GRPC, LANE, RealNode
from tests.security.required.cases import CASES, Names

MINE, THEIRS = Names("mine-1", b"", "g", "x"), Names("theirs-1", b"", "theirs", "theirs")
NONE = Names("mine-none", b"", "g-none", "x-none")  # allowed, and not there


def repeated(make: Any) -> Iterator[Any]:
    """The same request with each of its lists longer, one after the other."""
    mine, theirs, none = make(MINE), make(THEIRS), make(NONE)
    for field in fields(mine):
        parts = getattr(mine, field.name)
        if isinstance(parts, tuple) and parts:
            others, absent = getattr(theirs, field.name), getattr(none, field.name)
            yield replace(mine, **{field.name: (*parts, *others, *parts, *absent, *absent)})
            doubled = tuple(_doubled(one) for one in parts)
            yield replace(mine, **{field.name: (*others, *doubled, *doubled)})


def _doubled(part: Any) -> Any:
    """With each list in it twice as long."""
    if not is_dataclass(part):
        return part
    lists = {one.name: getattr(part, one.name) for one in fields(part)}
    return replace(part, **{name: found * 2 for name, found in lists.items() if isinstance(found, tuple)})


def test_they_end_no_node(tmp_path: Any) -> None:
    at, asked = RealNode(tmp_path, RULES_ON), 0
    try:
        kinds = ((TOPIC, "mine-"), (GROUP, "g"), (ResourceType.TRANSACTIONAL_ID, "x"))
        add(at, *(rule(kind, name, Operation.ALL, PREFIXED) for kind, name in kinds))
        topic = cluster.CreatableTopic(name="mine-1", num_partitions=1, replication_factor=1)
        ask(at, LANE, cluster.CreateTopicsRequest(topics=(topic,), timeout_ms=CALL_MS))
        for kind, case in CASES.items():
            for request in repeated(case.make):
                for wire in (LANE, GRPC) if kind in BY_REQUEST else (GRPC,):
                    ask(at, wire, request)
                    asked += 1
                    assert not at.crashes, (kind.__name__, wire, at.crashes)
    finally:
        at.close()
    assert asked > 60
