"""The generators: what a seed stands for never changes, every version is asked, and odd values arrive on the wire."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from differential.__main__ import _numbers, _ranges
from differential.builders import BUILDERS, World
from differential.compare import ABSENT, Difference
from differential.conversation import API_VERSIONS, CLOSED
from differential.odd import fields_of, with_odd_value
from differential.sequences import KINDS, SETTING_STEPS, sequence
from differential.shrink import shrunk
from differential.wanted import WANTED
from quorumlog.wire.protocol.apis import APIS
from quorumlog.wire.protocol.delegation_tokens import TOKEN_KEYS, TOKEN_VERSIONS
from quorumlog.wire.protocol.versions import NEWEST, OLDEST

TOKENS = {name: TOKEN_VERSIONS[key] for name, key in TOKEN_KEYS.items()}
VERSIONS = {api.schema: (api.oldest, api.newest) for api in APIS} | {API_VERSIONS: (OLDEST, NEWEST)} | TOKENS
EVERY = {(name, version) for name, (low, high) in VERSIONS.items() for version in range(low, high + 1)}


def test_there_is_a_builder_for_every_api() -> None:
    assert set(BUILDERS) == set(VERSIONS)


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_a_seed_is_one_sequence(seed: int) -> None:
    assert repr(sequence(seed, VERSIONS)) == repr(sequence(seed, VERSIONS))
    names = repr(sequence(seed, VERSIONS, turn=5)).replace(f"d{seed}-5-", f"d{seed}-0-")
    assert names == repr(sequence(seed, VERSIONS, turn=0))


def test_breadth_asks_every_version_of_every_api_as_meant_and_oddly() -> None:
    steps = sequence(0, VERSIONS)[SETTING_STEPS:]
    calls = Counter((step.api, step.version) for step in steps)
    assert set(calls) == EVERY and min(calls.values()) == 2
    odd = Counter((step.api, step.version) for step in steps if step.odd)
    assert len(odd) >= 0.9 * len(EVERY), "a request without a field has nothing that can be odd"


@pytest.mark.parametrize(("api", "version"), sorted(EVERY))
def test_every_meaningful_request_can_be_written(api: str, version: int) -> None:
    world = World(Random(1), "d1-0-")
    for _ in range(20):
        assert fields_of(api, version, BUILDERS[api](world)) is not None


def test_list_offsets_names_no_id_which_only_we_would_read() -> None:
    world = World(Random(3), "d3-0-")
    topics = [topic for _ in range(20) for topic in BUILDERS["list_offsets"](world)["topics"]]
    assert topics and not any("topic_id" in topic for topic in topics)


def test_an_odd_value_is_one_that_the_bytes_show() -> None:
    world, changed = World(Random(2), "d2-0-"), 0
    for api, version in sorted(EVERY):
        if api == "produce":  # records are compared by their bytes, not as values
            continue
        values = BUILDERS[api](world)
        other, odd = with_odd_value(world, api, version, values)
        before, after = fields_of(api, version, values), fields_of(api, version, other)
        assert after is not None
        changed += bool(odd) and before != after
    assert changed >= 0.7 * len(EVERY)


def test_a_transaction_is_also_extended_by_nothing() -> None:
    world, drawn = World(Random(4), "d4-0-"), []
    for _ in range(300):
        _, odd = with_odd_value(world, "add_partitions_to_txn", 3, BUILDERS["add_partitions_to_txn"](world))
        drawn += [odd] if odd.endswith(("partitions = []", "topics = []", "topics = None")) else []
    assert {odd.rpartition(".")[2] for odd in drawn} >= {
        "v3_and_below_topics = []", "v3_and_below_topics = None", "partitions = []"
    }  # fmt: skip


def test_a_failing_sequence_is_shrunk_to_what_fails() -> None:
    assert shrunk(range(50), lambda kept: {3, 17, 49} <= set(kept)) == [3, 17, 49]


def test_steps_are_named_in_ranges() -> None:
    assert _ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"
    assert _numbers("0-2,5,7-8") == [0, 1, 2, 5, 7, 8]


def test_every_row_takes_whatever_differs_in_whatever_was_asked() -> None:
    """A row that raised would end the run."""
    values = (None, 0, -1, "", "x", {}, [], {"x": 1}, {"partitions": []}, ABSENT, CLOSED)
    every = [Difference("a.error_code", theirs, ours) for theirs in values for ours in values]
    for step in [step for seed in range(12) for step in sequence(seed, VERSIONS)]:
        for row in WANTED:
            if not row.api or step.api in row.api.split("|"):
                for found in every[::7]:
                    row.if_(step, found)
                    row.explains(step, found, every)
