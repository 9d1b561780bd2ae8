"""Positions of streams: equal ones are equal texts, the plain form of Kafka's source is read, the rest is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.errors import ConfigError
from quorumlog.spark.stream.offset import StreamOffset, stream_offset

KEYS = st.tuples(st.text(min_size=1, max_size=5), st.integers(0, 20))


@st.composite
def positions(draw: st.DrawFn) -> StreamOffset:
    offsets = draw(st.dictionaries(KEYS, st.integers(0, 2**62), max_size=8))
    return StreamOffset(
        offsets=offsets,
        cluster_id=draw(st.text(max_size=22)),
        topic_ids={topic: draw(st.binary(min_size=16, max_size=16)) for topic, _ in sorted(offsets)},
        epochs={key: draw(st.integers(-1, 2**31 - 1)) for key in offsets},
    )


@given(positions())
def test_a_position_survives_the_checkpoint(position: StreamOffset) -> None:
    text = json.dumps(position.to_json())
    assert stream_offset(json.loads(text)) == position
    shuffled = StreamOffset(
        offsets=dict(reversed(position.offsets.items())),
        cluster_id=position.cluster_id,
        topic_ids=dict(reversed(position.topic_ids.items())),
        epochs=dict(reversed(position.epochs.items())),
    )
    assert json.dumps(shuffled.to_json()) == text  # Spark compares texts


def test_the_form_is_that_of_the_page() -> None:
    position = StreamOffset(
        offsets={("orders", 10): 7, ("orders", 2): 120},
        cluster_id="abc",
        topic_ids={"orders": bytes(16)},
        epochs={("orders", 2): 5},
    )
    assert position.to_json() == {
        "v": 1, "c": "abc", "o": {"orders": {"2": 120, "10": 7}}, "t": {"orders": "AAAAAAAAAAAAAAAAAAAAAA"},
        "e": {"orders": {"2": 5}},
    }  # fmt: skip
    assert list(position.to_json()["o"]["orders"]) == ["2", "10"]


def test_the_plain_form_is_read() -> None:
    assert stream_offset({"orders": {"0": 120, "1": 3}}) == StreamOffset(offsets={("orders", 0): 120, ("orders", 1): 3})


BAD: list[tuple[str, Any, str]] = [
    ("another version", {"v": 2, "o": {}}, "version 2"),
    ("no offsets", {"v": 1, "c": ""}, "not a position"),
    ("no partition", {"orders": {"zero": 1}}, "not a position"),
    ("no offset", {"orders": {"0": None}}, "not a position"),
    ("no topic", {"orders": 7}, "not a position"),
    ("no id", {"v": 1, "c": "", "o": {}, "t": {"orders": "?"}, "e": {}}, "not a position"),
]


@pytest.mark.parametrize(("found", "text"), [c[1:] for c in BAD], ids=[c[0] for c in BAD])
def test_other_texts_are_refused(found: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        stream_offset(found)
