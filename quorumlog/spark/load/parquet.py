"""The Parquet files of one range, and what such a file holds.

The columns are those of the format `quorumlog` but for the topic, whose name stands in the path: no name of the path is
a column of the file, so a reader that makes columns of folders meets none twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quorumlog.client.errors import QuorumlogError
from quorumlog.records.format.crc import crc32c
from quorumlog.spark.load.folder import NO_DAY, LoadedFile, PlannedRange, name_of_day
from quorumlog.spark.load.store import Store
from quorumlog.spark.read.columns import arrow_schema
from quorumlog.spark.read.options import Shape
from quorumlog.spark.read.schema import schema_of

COLUMNS = ("key", "value", "partition", "offset", "timestamp", "timestampType", "headers")
ROW_GROUP_ROWS = 512 * 1024
ROW_GROUP_BYTES = 64 * 1024 * 1024  # of Arrow, in memory, of all days of a range together
MAX_DAYS = 400  # of one range that are written at once: each is an open file
READ_BYTES = 4 * 1024 * 1024
_REPEATED = ("key", "partition", "timestampType")  # what a dictionary may shorten
_DAY_US = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01, 9999-12-31
_NO_TIME_US = -(2**63)


class DamagedFile(QuorumlogError):
    """A file of a load is there and cannot be read. It was whole when it got its name."""


@dataclass(frozen=True, slots=True)
class Footer:
    """What the end of a file says. first, last: offsets, by its statistics; -1 without rows."""

    rows: int
    first: int
    last: int


class RangeFiles:
    """A context that writes the batches of one range into a local folder: one file, or one for each day (UTC).

    Rows of more than MAX_DAYS days wait in a file of Arrow, and are written once the first days' files are closed.
    """

    def __init__(self, folder: Path, planned: PlannedRange, schema: Any, *, by_day: bool) -> None:
        self._folder, self._planned, self._schema, self._by_day = folder, planned, schema, by_day
        self._open: dict[str, _OpenFile] = {}
        self._closed: dict[str, _OpenFile] = {}
        self._waiting: _WaitingRows | None = None
        self._made = 0  # files in the folder: each has its number as its name

    def __enter__(self) -> RangeFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._open.values():
            one.close()
        if self._waiting is not None:
            self._waiting.close()

    def add(self, batch: Any) -> None:
        """batch: of the schema."""
        for day, rows in _by_day(batch) if self._by_day else [("", batch)]:
            path = name_of_day(day, self._planned.name)
            if path in self._open or len(self._open) < MAX_DAYS:
                self._file(path).add(rows)
            else:
                self._later().add(rows)
        if sum(one.waiting_bytes for one in self._open.values()) >= ROW_GROUP_BYTES:
            max(self._open.values(), key=lambda one: one.waiting_bytes).flush()

    def finish(self) -> dict[str, tuple[LoadedFile, Path]]:
        """The local files by the path that they are for. A former file whose records are gone is one without rows."""
        self._close()
        while self._waiting is not None:
            rest, self._waiting = self._waiting, None
            for batch in rest.batches():
                self.add(batch)
            self._close()
        for path in self._planned.replaces if self._planned.is_written_over else ():
            if path not in self._closed:
                self._file(path)
                self._close()
        return {path: (describe(path, one.local), one.local) for path, one in self._closed.items()}

    def _close(self) -> None:
        """Each day is written by one file alone, for its rows wait as long as it has none."""
        for one in self._open.values():
            one.close()
        self._closed |= self._open
        self._open = {}

    def _later(self) -> _WaitingRows:
        if self._waiting is None:
            self._waiting = _WaitingRows(self._next_local(), self._schema)
        return self._waiting

    def _file(self, path: str) -> _OpenFile:
        if path not in self._open:
            self._open[path] = _OpenFile(self._next_local(), self._schema)
        return self._open[path]

    def _next_local(self) -> Path:
        self._made += 1
        return self._folder / f"{self._made}"


class _WaitingRows:
    """Batches in a local file, which is gone once they have been read."""

    def __init__(self, local: Path, schema: Any) -> None:
        self._local = local
        self._writer = pa.ipc.new_file(str(local), schema)

    def add(self, batch: Any) -> None:
        self._writer.write_batch(batch)

    def batches(self) -> Iterator[Any]:
        self.close()
        with pa.memory_map(str(self._local)) as file:
            found = pa.ipc.open_file(file)
            for index in range(found.num_record_batches):
                yield found.get_batch(index)
        self._local.unlink()

    def close(self) -> None:
        """Once or more."""
        self._writer.close()


class _OpenFile:
    def __init__(self, local: Path, schema: Any) -> None:
        self.local = local
        self._schema = schema
        repeated: Any = [name for name in _REPEATED if name in schema.names]
        self._writer = pq.ParquetWriter(local, schema, use_dictionary=repeated)
        self._waiting: list[Any] = []
        self._waiting_rows = 0
        self.waiting_bytes = 0

    def add(self, batch: Any) -> None:
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        self.waiting_bytes += batch.nbytes
        if self._waiting_rows >= ROW_GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema), self._waiting_rows)
        self._waiting, self._waiting_rows, self.waiting_bytes = [], 0, 0

    def close(self) -> None:
        """Once or more."""
        self.flush()
        self._writer.close()


def file_schema() -> Any:
    """Arrow's schema of every file of a load."""
    return arrow_schema(schema_of(Shape(columns=COLUMNS)))


def describe(path: str, local: Path) -> LoadedFile:
    """What the commit says of a local file that is for this path. Raises pyarrow's ArrowInvalid if it is no Parquet."""
    crc, size, footer = 0, 0, read_footer(local)
    with local.open("rb") as file:
        while piece := file.read(READ_BYTES):
            crc, size = crc32c(piece, crc), size + len(piece)
    return LoadedFile(path=path, rows=footer.rows, bytes=size, crc32c=crc, first=footer.first, last=footer.last)


def inspect(store: Store, name: str) -> LoadedFile | None:
    """What is there under this name. Raises DamagedFile."""
    with store.local_copy(name) as local:
        if local is None:
            return None
        try:
            return describe(name, local)
        except ValueError as error:  # pyarrow's ArrowInvalid is one
            raise DamagedFile(
                f"{name} is no Parquet file any more ({error}): move it away, then load again, which writes it anew"
            ) from error


def read_footer(local: Path) -> Footer:
    """Raises pyarrow's ArrowInvalid if it is no Parquet."""
    found = pq.read_metadata(local)
    column = found.schema.names.index("offset")
    bounds: list[Any] = [found.row_group(index).column(column).statistics for index in range(found.num_row_groups)]
    filled = [one for one in bounds if one is not None and one.has_min_max]
    first = min((one.min for one in filled), default=-1)
    return Footer(found.num_rows, first, max((one.max for one in filled), default=-1))


def _by_day(batch: Any) -> Iterable[tuple[str, Any]]:
    """The rows of each day, in the order of offsets. What is no day that all readers know, as one of the year 10000 or
    null, is NO_DAY."""
    times = batch.column("timestamp")
    days = np.floor_divide(times.cast(pa.int64()).fill_null(_NO_TIME_US).to_numpy(), _DAY_US)
    days = np.where((days >= _FIRST_DAY) & (days <= _LAST_DAY), days, _NO_TIME_US)
    found = np.unique(days)
    for day in found:
        rows = batch if len(found) == 1 else batch.filter(pa.array(days == day))
        yield NO_DAY if day == _NO_TIME_US else str(np.datetime64(int(day), "D")), rows
