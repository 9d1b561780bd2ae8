"""Where a mirror keeps its file, beside Spark's checkpoint: a folder, or an address that Spark's Hadoop can reach.

What is kept replaces what was kept as a whole, whenever the mirror is killed. A folder has one file, which another one
is renamed to. An object store cannot rename, and a distributed file system may have half a file of a writer that died:
there each version has a name of its own, and the newest whole one counts.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from quorumlog.client.errors import ConfigError
from quorumlog.spark.durable import make_folders, sync

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "mirror.json"
SPARK = "spark"  # below it is Spark's own checkpoint
VERSIONS_KEPT = 2  # the newest may be half a file
_VERSION = re.compile(r"mirror-([0-9]{12})\.json")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://.+")


class Checkpoint(Protocol):
    """One mirror's. `for_spark`: the address of Spark's own."""

    @property
    def for_spark(self) -> str: ...

    def read(self) -> str | None:
        """What was kept; None: nothing. Raises ConfigError if there are files of others, and none of a mirror."""

    def keep(self, text: str) -> None:
        """It is durable when this returns. text: ends in a line feed."""


def is_address(place: str) -> bool:
    return _ADDRESS.fullmatch(place) is not None


def open_checkpoint(place: str, spark: SparkSession) -> Checkpoint:
    """place: a folder, or an address such as s3a://lake/mirror. Raises ConfigError."""
    return AddressCheckpoint(spark, place) if is_address(place) else FolderCheckpoint(Path(place))


def _not_ours(place: str) -> ConfigError:
    return ConfigError(f"--checkpoint {place} has files, and none of a mirror: name an empty folder")


class FolderCheckpoint:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def for_spark(self) -> str:
        return str(self._folder / SPARK)

    def read(self) -> str | None:
        file = self._folder / FILE
        if file.exists():
            return file.read_text()
        if self._folder.exists() and any(one.name != _beside(file).name for one in self._folder.iterdir()):
            raise _not_ours(str(self._folder))
        return None

    def keep(self, text: str) -> None:
        make_folders(self._folder)
        file = self._folder / FILE
        beside = _beside(file)
        beside.write_text(text)
        sync(beside)
        beside.replace(file)
        sync(self._folder)


def _beside(file: Path) -> Path:
    return file.with_suffix(".new")


class AddressCheckpoint:
    """By the Hadoop of Spark's own Java, so every scheme goes that the query's checkpoint can have."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        """Raises ConfigError if Spark has nothing for the scheme."""
        self._address = address.rstrip("/")
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        try:
            self._files = self._path().getFileSystem(context._jsc.hadoopConfiguration())
        except Exception as error:
            raise ConfigError(
                f"--checkpoint {address}: Spark cannot open it ({str(error).splitlines()[0]}); its package for that "
                "scheme has to be there, as spark-submit --packages org.apache.hadoop:hadoop-aws:VERSION for s3a://"
            ) from error

    @property
    def for_spark(self) -> str:
        return f"{self._address}/{SPARK}"

    def read(self) -> str | None:
        names = self._names()
        for version in sorted(_versions(names), reverse=True):
            text = self._text(version)
            if text.endswith("}\n"):
                return text
        if names and not _versions(names):
            raise _not_ours(self._address)
        return None

    def keep(self, text: str) -> None:
        versions = sorted(_versions(self._names()))
        out = self._files.create(self._path(_named(versions[-1] + 1 if versions else 1)), False)
        try:
            out.write(text.encode())
        finally:
            out.close()
        for old in versions[: -(VERSIONS_KEPT - 1)]:
            self._files.delete(self._path(_named(old)), False)

    def _names(self) -> list[str]:
        if not self._files.exists(self._path()):
            return []
        return [str(one.getPath().getName()) for one in self._files.listStatus(self._path())]

    def _text(self, version: int) -> str:
        stream = self._files.open(self._path(_named(version)))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _path(self, name: str = "") -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._address}/{name}" if name else self._address)


def _versions(names: list[str]) -> list[int]:
    return [int(found[1]) for name in names if (found := _VERSION.fullmatch(name)) is not None]


def _named(version: int) -> str:
    return f"mirror-{version:012}.json"
