"""What is a matter of the cluster as a whole, and copies of partitions that another cluster wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.imports import BeginImportRequest, FinishImportRequest, ImportRecordsRequest
from quorumlog.security.required.asker import Asker
from quorumlog.security.required.judged import Judged
from quorumlog.security.required.need import CLUSTER_ALTER, TOPIC_WRITE, Need


def of_cluster(need: Need) -> Callable[[Asker, Any], Judged]:
    """The request needs this right as a whole."""

    def judge(ask: Asker, request: Any) -> Judged:
        ask.demand(need)
        return Judged(request)

    return judge


def nothing(_ask: Asker, request: Any) -> Judged:
    """Who may connect may ask this."""
    return Judged(request)


def begin_import(ask: Asker, request: BeginImportRequest) -> Judged:
    ask.demand(CLUSTER_ALTER)
    ask.demand(TOPIC_WRITE, request.name)
    return Judged(request)


def import_records(ask: Asker, request: ImportRecordsRequest | FinishImportRequest) -> Judged:
    ask.demand(CLUSTER_ALTER)
    name = ask.topics.name_of(request.topic_id)
    if name is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "this broker does not know the topic; try again")
    ask.demand(TOPIC_WRITE, name)
    return Judged(request)
