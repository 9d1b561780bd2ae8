"""Keys of transactions: Kafka's names and defaults. Joint ones are ours (decision 112)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorumlog.settings.key import NodeKey, keys_of, parse_bool, part_of
from quorumlog.settings.transactions import DAY_MS, JointConfig, TransactionConfig, VerificationConfig
from quorumlog.transactions_topic import TransactionsTopicConfig


def _parse_two_phase(text: str) -> bool:
    if parse_bool(text):
        raise ValueError(
            "no producer may prepare a transaction for a coordinator outside of the cluster here; say false"
        )
    return False


TRANSACTION_KEYS = (  # in the order in which DescribeConfigs answers
    *keys_of(TransactionConfig, last="transaction.remove.expired.transaction.cleanup.interval.ms"),
    *keys_of(VerificationConfig),
    NodeKey(
        name="transaction.two.phase.commit.enable",
        parse=_parse_two_phase,
        default="false",
        doc="Transactions that a coordinator outside of the cluster decides (KIP-939): false, they are not served.",
    ),
    *keys_of(TransactionConfig, "transaction.coordinator.max.ids"),
    *keys_of(TransactionsTopicConfig),
)


def transaction_config(node: Mapping[str, Any]) -> TransactionConfig:
    """node: the values of all keys by name."""
    single_ms = min(DAY_MS, node["joint.expiration.ms"])
    return part_of(TransactionConfig, node, joint=part_of(JointConfig, node, single_expiration_ms=single_ms))
