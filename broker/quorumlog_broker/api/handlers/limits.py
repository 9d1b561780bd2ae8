"""Checks that several handlers share: the size of a request is checked before any work is done for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.settings.requests import HandlerLimits


def check_topic_count(topics: Sequence[Any], limits: HandlerLimits) -> None:
    if len(topics) > limits.max_topics_per_request:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"{len(topics)} topics in one request, limit {limits.max_topics_per_request}; split it",
        )
