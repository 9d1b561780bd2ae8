"""Where ours differs from Spark's own Kafka source, and why it is wanted. Everything else is a fault of the matrix."""

from __future__ import annotations

from collections.abc import Mapping

from tests.spark.matrix.judging import OURS_ERRS, THEIRS_ERRS, Difference

_REFUSED = "an option that does nothing is refused by name, so that a typo does not go unnoticed"
_PINNED = "a beginning that time changes needs a name under which it is kept, or records between two answers are lost"
_NO_PARTITION = "what is assigned and is not there is a mistake, and silence would hide that it is not read"
_SIZE = "Spark 4.2's source cuts a batch by maxRecordsPerPartition only where minPartitions wants more tasks"
_OF_STREAMS = "a batch refuses by name what only a stream can have; Spark's source ignores it with a warning in its log"
_NO_NUMBER = "a limit that is no positive number would read nothing, or be none; Spark's source takes it silently"

WANTED: Mapping[str, Difference] = {
    "a pattern of Java": Difference(OURS_ERRS, "patterns are Python's, which has no classes such as \\p{Lower}"),
    "an option that nobody knows": Difference(OURS_ERRS, _REFUSED),
    "a client's option that nobody knows": Difference(OURS_ERRS, _REFUSED),
    "an unknown partition": Difference(OURS_ERRS, _NO_PARTITION),
    "an empty object of partitions": Difference(OURS_ERRS, _NO_PARTITION),
    "an empty list of partitions": Difference(OURS_ERRS, _NO_PARTITION),
    "a time in ISO 8601": Difference(THEIRS_ERRS, "ours takes times in ISO 8601, too"),
    "tasks of seven at most": Difference("tasks", _SIZE),
    "uncommitted, in tasks": Difference("tasks", _SIZE),
    "a start beyond the log, skipped": Difference(
        THEIRS_ERRS, "failOnDataLoss=false goes on with what is left, also where that is nothing"
    ),
    "the default of isolation": Difference(
        "rows, tasks", "read_committed is the default: rows of failed attempts lie in topics written exactly once"
    ),
    "maxOffsetsPerTrigger of a batch": Difference(OURS_ERRS, _OF_STREAMS),
    "minOffsetsPerTrigger of a batch": Difference(OURS_ERRS, _OF_STREAMS),
    "maxTriggerDelay of a batch": Difference(OURS_ERRS, _OF_STREAMS),
    "stream: a time without a pin": Difference(OURS_ERRS, _PINNED),
    "stream: the default of its start": Difference(OURS_ERRS, _PINNED),
    "stream: a start beyond the log": Difference(
        THEIRS_ERRS,
        "the stream begins there once the log is so long: what may be read can end before it, by a transaction",
    ),
    "stream: endingTimestamp": Difference(
        OURS_ERRS, "a stream has no end; Spark's source refuses the two others alone"
    ),
    "stream: maxOffsetsPerTrigger=-1": Difference(OURS_ERRS, _NO_NUMBER),
    "stream: maxOffsetsPerTrigger=0": Difference(OURS_ERRS, _NO_NUMBER),
    "stream: minOffsetsPerTrigger=-1": Difference(OURS_ERRS, _NO_NUMBER),
    "stream: minOffsetsPerTrigger=0": Difference(OURS_ERRS, _NO_NUMBER),
}
