"""The hash of a setting, packed at once, is that of the general encoding."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorumlog_quorum.metadata.canonical import entry_hash, setting_hash


@given(st.integers(0, 300), st.text(max_size=20), st.text(max_size=20), st.text(max_size=300))
def test_a_setting_is_hashed_as_any_entry(kind: int, resource: str, name: str, value: str) -> None:
    assert setting_hash(kind, resource, name, value) == entry_hash(("config", kind, resource, name), value)
