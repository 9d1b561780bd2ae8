"""A consumer of the virtual year: it reads whole logs through the broker's fetch path, and hands them to the models."""

from __future__ import annotations

from jepsen.soak.year.machine import Process
from jepsen.soak.year.model import Found, PartitionModel, require
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset
from quorumlog.messages.buffer import whole
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse
from quorumlog.records import decode_batch
from quorumlog.records.control import EndTxnMarker, decode_control
from quorumlog.records.format.batch import BatchHeader, headers
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.fetch_path import FetchParams
from quorumlog_broker.fetch.targets import FetchTarget

READ_BYTES = 8_000
READ_COMMITTED = 1
EARLIEST = -2


class Reader:
    """latest_wall_ms: the latest time that a clock has shown so far; kept up to date by the run."""

    def __init__(self) -> None:
        self.latest_wall_ms = 0
        self.batches = self.looks = self.searches = 0

    def look(self, process: Process, model: PartitionModel) -> None:
        """Read everything, at both isolation levels; raises Broken. Nothing happens where the log is offline."""
        try:
            found, start = process.run(self._everything(process, model))
            committed, stable = process.run(self._committed(process, model, start))
        except ApiError as error:
            require(error.code is ErrorCode.KAFKA_STORAGE_ERROR, "read-error", f"{model.name}: {error}")
            return
        self.looks += 1
        self.batches += len(found)
        model.started_at(start, self.latest_wall_ms)
        model.check_committed(committed, stable)
        model.check(found)

    def settle(self, process: Process, model: PartitionModel, *, lost_power: bool) -> None:
        """After a start: what became of the batches that were not answered.

        lost_power: or the directory failed; what was not synced may be gone.
        """
        replica = process.plane.registry.find(model.topic_id, model.index)
        if replica.log is None or not replica.is_usable:
            return
        end = replica.log.end_offset
        if lost_power and model.kind.loses and end < model.end:
            model.lose_from(end)
        found, _ = process.run(self._everything(process, model, first=model.end))
        model.settle(found, end)

    def search(self, process: Process, model: PartitionModel, timestamp_ms: int) -> None:
        """ListOffsets by time, against the list. Only where no record can be compacted away."""
        answer = process.run(process.plane.offset_queries.list_offset(model.topic_id, model.index, timestamp_ms))
        if answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            return
        self.searches += 1
        wanted = next(
            (
                batch.base + number
                for batch in model.batches
                if batch.wall_ms >= timestamp_ms
                for number in range(batch.end - batch.base)
                if batch.base + number >= model.start
            ),
            -1,
        )
        require(
            answer.offset == wanted, "offset-by-time", f"{model.name}: {answer.offset} for {timestamp_ms}, {wanted}"
        )

    async def _everything(
        self, process: Process, model: PartitionModel, first: Offset | None = None
    ) -> tuple[list[Found], Offset]:
        found: list[Found] = []
        offset = first
        if offset is None:
            answer = await process.plane.offset_queries.list_offset(model.topic_id, model.index, EARLIEST)
            if answer.error_code:
                raise ApiError(ErrorCode(answer.error_code), "earliest offset")
            offset = answer.offset
        start = offset
        while True:
            part = await self._fetch(process, model, offset, isolation=0)
            data = bytes(whole(part.records))
            if not data:
                require(
                    offset >= part.high_watermark, "hole", f"{model.name}: nothing at {offset} < {part.high_watermark}"
                )
                return found, start
            for header in headers(data):
                require(header.next_offset > offset, "hole", f"{model.name}: {header.base_offset} after {offset}")
                found.append(_found(data, header))
                offset = header.next_offset

    async def _committed(
        self, process: Process, model: PartitionModel, offset: Offset
    ) -> tuple[list[tuple[Offset, bytes | None, bytes | None]], Offset]:
        values: list[tuple[Offset, bytes | None, bytes | None]] = []
        start = offset
        while True:
            part = await self._fetch(process, model, offset, isolation=READ_COMMITTED)
            data = bytes(whole(part.records))
            if not data:
                return values, part.last_stable_offset
            waiting = sorted(part.aborted_transactions, key=lambda one: -one.first_offset)
            aborting: set[int] = set()  # producers whose aborted transaction is being read; only looked up
            for header in headers(data):
                while waiting and waiting[-1].first_offset <= header.base_offset:
                    aborting.add(waiting.pop().producer_id)
                if header.is_control:
                    aborting.discard(header.producer_id)
                elif header.producer_id not in aborting or not header.is_transactional:
                    records = decode_batch(data, header)
                    values += [(one.offset, one.key, one.value) for one in records if one.offset >= start]
                offset = header.next_offset

    async def _fetch(
        self, process: Process, model: PartitionModel, offset: Offset, isolation: int
    ) -> FetchPartitionResponse:
        wanted = FetchPartition(index=model.index, fetch_offset=offset, max_bytes=READ_BYTES)
        context = FetchContext((FetchTarget(model.topic_id, wanted),), None)
        params = FetchParams(max_wait_ms=0, min_bytes=1, max_bytes=READ_BYTES, isolation_level=isolation)
        responses, _ = await process.plane.fetch_path.fetch(context, params)
        (part,) = responses
        if part.error_code:
            raise ApiError(ErrorCode(part.error_code), f"{model.name} at {offset}")
        return part


def _found(data: bytes, header: BatchHeader) -> Found:
    records = tuple((one.offset, one.key, one.value) for one in decode_batch(data, header))
    marker = ""
    if header.is_control:
        control = decode_control(records[0][1], records[0][2]) if records else None
        marker = "commit" if isinstance(control, EndTxnMarker) and control.committed else "abort"
        records = ()
    return Found(
        header.base_offset, header.next_offset, header.producer_id, marker, records, header.size, header.max_timestamp
    )
