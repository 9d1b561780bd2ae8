"""What a fuzz test has tried and how far it got: if every input is refused at once, it tests nothing."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from quorumlog.wire.protocol.apis import APIS
from tests.wire.frames import KINDS

LEAST_INPUTS = 20_000  # below that, chance decides what was tried
HANDLED = [(api.key, version) for api in APIS for version in range(api.oldest, api.newest + 1)]
SCHEMAS = {api.key: api.schema for api in APIS}


class Tally:
    """made, begun: frames, by kind of damage. handled: requests that came to a handler, by API and version.

    codes: the error codes of responses, by type. by_grpc: requests handled, by method.
    """

    def __init__(self) -> None:
        self.inputs = self.answered = self.sockets = 0
        self.made: Counter[str] = Counter()
        self.begun: Counter[str] = Counter()
        self.handled: Counter[tuple[int, int]] = Counter()
        self.by_grpc: Counter[str] = Counter()
        self.codes: defaultdict[str, set[int]] = defaultdict(set)

    def count_response(self, response: Any) -> None:
        self.codes[type(response).__name__].update(_codes(response))

    def shortfalls(self) -> list[str]:
        """What was tried too seldom to call it harmless; empty if there were too few inputs to say anything."""
        if self.inputs < LEAST_INPUTS:
            return []
        of_cell, of_kind = self.inputs // 5_000, self.inputs // 200
        cells = [(SCHEMAS[key], version, self.handled[key, version]) for key, version in HANDLED]
        return [
            *(f"{schema} {version}: handled {count} times" for schema, version, count in cells if count < of_cell),
            *(f"{kind}: only {self.made[kind]} frames" for kind in KINDS if self.made[kind] < of_kind),
        ]

    @property
    def least_handled(self) -> int:
        return min(self.handled[cell] for cell in HANDLED)

    def line(self) -> str:
        cells = sum(self.handled[cell] > 0 for cell in HANDLED)
        return (
            f"{sum(self.made.values()):,} frames, {sum(self.handled.values()) + sum(self.by_grpc.values()):,} requests "
            f"handled, {cells} of {len(HANDLED)} versions"
        )

    def report(self) -> Iterator[str]:
        yield f"{self.inputs:,} inputs, {self.line()} (each {self.least_handled:,} times or more)"
        yield f"{self.answered:,} inputs got an answer; {self.sockets:,} also went over a socket"
        yield "kind of damage           frames  at a handler"
        yield from (f"  {kind:21} {self.made[kind]:8,} {self.begun[kind]:8,}" for kind in KINDS)
        yield "API                      handled  by gRPC  different error codes"
        for api in APIS:
            count = sum(self.handled[api.key, version] for version in range(api.oldest, api.newest + 1))
            codes = len(self.codes[api.method.response.__name__])
            yield f"  {api.schema:21} {count:8,} {self.by_grpc[api.method.name]:8,} {codes:8}"


def _codes(part: Any) -> Iterator[int]:
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if field.name == "error_code":
            yield value
        elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            for one in value:
                yield from _codes(one)
