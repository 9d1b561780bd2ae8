"""Where a stream of chunks (FetchChunks) reads on: broker and reader work it out alike, without a word about it."""

from __future__ import annotations

from dataclasses import replace

from quorumlog.ids import Offset
from quorumlog.messages.fetch import FetchPartition, FetchRequest
from quorumlog.records import BatchHeader

NO_END: Offset = -1


def partition_of(fetch: FetchRequest) -> FetchPartition:
    """The only one of a stream's fetch."""
    return fetch.topics[0].partitions[0]


def behind(fetch: FetchRequest, last: BatchHeader | None) -> FetchRequest:
    """The next fetch, as the reader of the epoch of the chunk's last batch. None: the chunk was empty.

    A batch that leads no further than the fetch began changes nothing.
    """
    wanted = partition_of(fetch)
    if last is None or last.next_offset <= wanted.fetch_offset:
        return fetch
    further = replace(wanted, fetch_offset=last.next_offset, last_fetched_epoch=last.leader_epoch)
    return replace(fetch, topics=(replace(fetch.topics[0], partitions=(further,)),))
