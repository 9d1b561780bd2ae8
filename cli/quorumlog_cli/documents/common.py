"""What several commands print."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Where(TypedDict):
    cluster_id: str
    data_dir: str


class TopicPartition(TypedDict):
    topic: str
    partition: int


class ToldError(TypedDict):
    """kind: of the exit code, such as not_found. error: the cluster's error code by its name in Kafka."""

    exit_code: int
    kind: str
    message: str
    error: NotRequired[str]
    hint: NotRequired[str]


class Failure(TypedDict):
    """On stderr, whichever command has failed."""

    error: ToldError
