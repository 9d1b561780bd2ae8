"""What the verbs of `quorumlog transaction` ask, and how they say that something is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorumlog_cli.terminal.errors import CliError, Exit

if TYPE_CHECKING:
    from quorumlog.client.administration.transactions import TransactionDescription
    from quorumlog.client.blocking import Cluster


def described(cluster: Cluster, transactional_id: str) -> TransactionDescription:
    """Raises CliError(NOT_FOUND)."""
    from quorumlog.client.errors import RequestFailed
    from quorumlog.errors import ErrorCode

    try:
        return cluster.admin.describe_transaction(transactional_id)
    except RequestFailed as error:
        if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        hint = "quorumlog transaction list shows those that do"
        raise CliError(Exit.NOT_FOUND, f"transactional id {transactional_id!r} does not exist", hint) from error


def check_broker(cluster: Cluster, broker_id: int | None) -> None:
    """Raises CliError(NOT_FOUND) for an id that no broker has. None: any broker will do."""
    if broker_id is None:
        return
    known = sorted(broker.node_id for broker in cluster.admin.describe_cluster().brokers)
    if broker_id not in known:
        text = f"there is no broker {broker_id}, only {', '.join(map(str, known))}"
        raise CliError(Exit.NOT_FOUND, text, "quorumlog status shows which node is missing")
