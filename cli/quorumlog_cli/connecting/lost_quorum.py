"""What a command can say where nobody answers: whether that is because the quorum has lost its majority."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorumlog.client.blocking_admin import Admin

ASK_TIMEOUT_MS = 2_000
LOST = (
    "no leader of the quorum answers, so this is the last metadata that the broker had: a broker that has died since "
    "is not fenced, topics and settings cannot change, and no partition gets another leader. A majority of the "
    "controllers is needed; quorumlog status shows the local ones"
)


def lost_quorum(admin: Admin) -> str:
    """Empty if the quorum's leader answers, else what that means. It waits: ask only if something is amiss."""
    try:
        return "" if admin.describe_quorum(ASK_TIMEOUT_MS).leader_id >= 0 else LOST
    except Exception as error:
        if not is_silence(error):
            raise
        return LOST


def is_silence(error: Exception) -> bool:
    """Whether a node that was asked gave no answer, or one that it takes back later."""
    from quorumlog.client.errors import RequestFailed, Unavailable
    from quorumlog.rpc.transport import RpcError

    if isinstance(error, RequestFailed):
        return error.code.retriable
    return isinstance(error, RpcError | Unavailable | TimeoutError)
