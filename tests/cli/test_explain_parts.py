"""What `quorumlog explain` reads before it says something."""

from __future__ import annotations

from quorumlog_cli.commands.explaining.explain import parts_of


def test_a_quorum_is_explained_without_its_groups_and_transactions() -> None:
    """Where it is lost, each question to a broker that hangs takes seconds."""
    assert not {"groups", "transactions", "ends"} & set(parts_of("quorum"))
    assert "groups" in parts_of("group/billing") and {"groups", "transactions"} <= set(parts_of("billing"))
    assert "ends" in parts_of("topic/orders") and "quorum" in parts_of("broker/3")
