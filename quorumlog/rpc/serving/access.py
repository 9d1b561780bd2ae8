"""Which caller may make which call at which listener: pure decisions, the same for every transport.

An internal listener serves only nodes that have proven that they know the cluster's secret. A client listener serves no
call of the quorum or the controller and no replica's fetch: a forged fetch must not move a high watermark
(CVE-2018-1288).
"""

from __future__ import annotations

from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.fetch import FetchRequest
from quorumlog.messages.method import Method
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.transport import Listener
from quorumlog.security.required.nodes_only import INTERNAL_SERVICES


def refuse_caller(listener: Listener, caller: Caller) -> ApiError | None:
    """Why this listener serves nothing to this caller; None: it may call."""
    if not listener.internal or caller.peer is not None:
        return None
    return caller.refusal or ApiError(
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"listener {listener.name} serves nodes only"
    )


def refuse_request(listener: Listener, method: Method, request: Any) -> ApiError | None:
    """Why this listener does not serve this request to any caller; None: it does."""
    if listener.internal:
        return None
    if method.service in INTERNAL_SERVICES:
        return ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"{method.name} is for internal listeners")
    if isinstance(request, FetchRequest) and request.replica is not None:
        return ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "replicas fetch at internal listeners")
    return None
