"""A catalog of one table of Apache Iceberg: the folder that it lies in, a directory or an object store.

The table's state N is `metadata/vN.metadata.json`, created only if it is absent, by the load's own store (a link, or a
conditional PUT), and never written over. So of two commits that build on state N - 1 one wins, without a database or a
service. The names are those of the file system tables of Iceberg's specification ("File System Tables"), which calls
its way to commit unsafe where a rename may replace a file or is no single step: there is no rename here. Readers find
the newest state by `metadata/version-hint.text`, or by looking for the highest N.

All files of the table are read and written by the same store too, with the same credentials.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from typing import Any

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationError
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

from quorumlog.spark.load.choosing import CannotLoad
from quorumlog.spark.load.driving import drive
from quorumlog.spark.load.protocol import StoreUnclear, create_once
from quorumlog.spark.load.store import Store

HINT = "metadata/version-hint.text"
_SAME_SCHEMES = {"s3a": "s3", "azure": "az", "abfss": "abfs"}
_STATE = re.compile(r"metadata/v(\d+)(\.gz)?\.metadata\.json(\.gz)?")


class FolderCatalog(NoopCatalog):
    """What it lacks, as a list of tables, raises NotImplementedError."""

    def __init__(self, store: Store) -> None:
        super().__init__("folder")
        self._store = store

    def open(self) -> Table | None:
        """The table in its newest state, or None. Raises CannotLoad for one of another place."""
        states = self._states()
        if not states:
            return None
        name = max(states, key=_number_of)
        data = self._store.read(name)
        if data is None:
            raise StoreUnclear(f"{name} is listed and not there: look at the store, then load again")
        metadata = _parsed(f"{self._store.address}/{name}", data)
        if not is_same_place(metadata.location, self._store.address):
            raise CannotLoad(
                f"{self._store.address}: the table in it is that of {metadata.location}, where its readers look for "
                "every file, so a copy of the folder, or one that was moved, is no table. Move it back, or load into "
                "another folder"
            )
        return self._table(metadata, name)

    def _states(self) -> list[str]:
        return [name for name in self._store.list("metadata/v") if _number_of(name)]

    def create(self, schema: Any, partitions: Any, properties: dict[str, str]) -> Table:
        """A table without rows. Raises CommitFailedException if there is one, StoreUnclear."""
        made = new_table_metadata(schema, partitions, UNSORTED_SORT_ORDER, self._store.address, properties)
        return self._store_state(made, 1)

    def load_table(self, identifier: Any) -> Table:
        found = self.open()
        assert found is not None, "whoever has a table has opened it"
        return found

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Raises CommitFailedException where another was faster, StoreUnclear where nobody knows."""
        current = self.load_table(table.name())
        for requirement in requirements:
            requirement.validate(current.metadata)
        number = _number_of(current.metadata_location.removeprefix(f"{current.location()}/"))
        changed = update_table_metadata(current.metadata, updates, metadata_location=current.metadata_location)
        stored = self._store_state(changed, number + 1)
        answer: dict[str, Any] = {"metadata": stored.metadata, "metadata-location": stored.metadata_location}
        return CommitTableResponse(**answer)

    def _store_state(self, metadata: TableMetadata, number: int) -> Table:
        name = f"metadata/v{number}.metadata.json"
        data = metadata.model_dump_json(exclude_none=True).encode()
        if drive(create_once(name, data), self._store) != data:
            raise CommitFailedException(f"{name} is there: another has committed to the table")
        made = self._table(metadata, name)
        self.point_to(made)
        return made

    def point_to(self, table: Table) -> None:
        """Tells readers that this is the newest state, or which one is by now.

        Whoever makes a state tells it afterwards, and whoever has told one looks whether there is a newer: so of two at
        once the slower one does not leave the older state told.
        """
        told, newest = 0, _number_of(table.metadata_location.removeprefix(f"{table.location()}/"))
        while told < newest:
            told = newest
            _put(self._store, HINT, str(told).encode())
            newest = max(map(_number_of, self._states()), default=told)

    def _table(self, metadata: TableMetadata, name: str) -> Table:
        return Table(
            identifier=("folder", "table"),
            metadata=metadata,
            metadata_location=f"{metadata.location}/{name}",
            io=StoreIO(self._store, metadata.location),
            catalog=self,
        )


def _parsed(address: str, data: bytes) -> TableMetadata:
    """Raises CannotLoad."""
    try:
        text = gzip.decompress(data) if ".gz" in address.rpartition("/")[2] else data
        return TableMetadataUtil.parse_raw(text.decode())
    except (ValidationError, ValueError, EOFError, OSError) as error:
        raise CannotLoad(
            f"{address} is no state of a table ({error}): was it copied by half? Restore it, then load again"
        ) from error


def is_same_place(location: str, address: str) -> bool:
    """Whether a table of this location lies at the store's address, by whatever name of it: a link, or s3a for s3."""
    return _place(location) == _place(address)


def _place(address: str) -> str:
    scheme, colon, rest = address.partition("://")
    if not colon:
        return os.path.realpath(address.removeprefix("file:"))
    if scheme == "file":
        return os.path.realpath(rest)
    return f"{_SAME_SCHEMES.get(scheme, scheme)}://{rest.rstrip('/')}"


def _number_of(name: str) -> int:
    """0: it is no state of the table."""
    found = _STATE.fullmatch(name)
    return int(found[1]) if found else 0


class StoreIO(FileIO):
    """Files of the table by the load's store. location: of the table, with which every file's address begins."""

    def __init__(self, store: Store, location: str) -> None:
        super().__init__()
        self._store, self._location = store, location

    def new_input(self, location: str) -> InputFile:
        return _Input(location, self._store, self._name(location))

    def new_output(self, location: str) -> OutputFile:
        return _Output(location, self._store, self._name(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Nothing is deleted: what an attempt that failed has left is removed as any file that no table names."""

    def _name(self, location: str) -> str:
        return location.removeprefix(f"{self._location}/")


class _Input(InputFile):
    def __init__(self, location: str, store: Store, name: str) -> None:
        super().__init__(location)
        self._store, self._name = store, name

    def __len__(self) -> int:
        return len(self._bytes()) if (size := self._store.size(self._name)) is None else size

    def exists(self) -> bool:
        return self._store.size(self._name) is not None

    def open(self, seekable: bool = True) -> Any:
        return io.BytesIO(self._bytes())

    def _bytes(self) -> bytes:
        found = self._store.read(self._name)
        if found is None:
            raise FileNotFoundError(f"{self.location} is not there")
        return found


class _Output(OutputFile):
    def __init__(self, location: str, store: Store, name: str) -> None:
        super().__init__(location)
        self._store, self._name = store, name

    def __len__(self) -> int:
        return len(self.to_input_file())

    def exists(self) -> bool:
        return self._store.size(self._name) is not None

    def to_input_file(self) -> InputFile:
        return _Input(self.location, self._store, self._name)

    def create(self, overwrite: bool = False) -> Any:
        """overwrite: as it is asked for does not matter: the library gives its files names that nobody else has."""
        return _Written(self._store, self._name)


class _Written(io.BytesIO):
    """Gets its name when it is closed."""

    def __init__(self, store: Store, name: str) -> None:
        super().__init__()
        self._store, self._name = store, name

    def close(self) -> None:
        if not self.closed:
            _put(self._store, self._name, self.getvalue())
        super().close()


def _put(store: Store, name: str, data: bytes) -> None:
    with store.scratch(0) as folder:
        (folder / "object").write_bytes(data)
        store.put_file(name, folder / "object", replaces=True)
