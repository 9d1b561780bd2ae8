"""Drives a load's protocol against a store: each step is one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from quorumlog.spark.load.choosing import Choice
from quorumlog.spark.load.folder import LoadedRange, Plan
from quorumlog.spark.load.parquet import inspect
from quorumlog.spark.load.protocol import (
    AddToTable,
    AskTable,
    Choose,
    Create,
    Inspect,
    List,
    Put,
    Read,
    Step,
    Steps,
    Sweep,
    Work,
)
from quorumlog.spark.load.store import Store
from quorumlog.spark.load.table import LakeTable

T = TypeVar("T")


def drive(
    steps: Steps[T],
    store: Store,
    choose: Callable[[Choose], Choice | None] | None = None,
    work: Callable[[Plan], Sequence[LoadedRange]] | None = None,
    table: Callable[[Plan], LakeTable] | None = None,
) -> T:
    """The protocol's result. choose, work, table: whoever drives a whole load gives them."""
    result: Any = None
    try:
        while True:
            result = _carry_out(steps.send(result), store, choose, work, table)
    except StopIteration as end:
        done: T = end.value
        return done


def _carry_out(step: Step, store: Store, choose: Any, work: Any, table: Any) -> Any:
    match step:
        case List(prefix):
            return store.list(prefix)
        case Read(name):
            return store.read(name)
        case Create(name, data):
            return store.create(name, data)
        case Put(name, local, replaces):
            return store.put_file(name, local, replaces=replaces)
        case Inspect(name):
            return inspect(store, name)
        case Sweep(number):
            return store.sweep(number)
        case Choose():
            return choose(step)
        case Work(plan):
            return work(plan)
        case AskTable(plan):
            return table(plan).ask(plan)
        case AddToTable(plan, commit, base):
            return table(plan).add(plan, commit, base)
