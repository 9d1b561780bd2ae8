"""A load's store in an object store: Amazon's S3 and those that speak like it, Google's, Azure's, by `obstore`.

Of two who create the same name one wins by a conditional PUT (`If-None-Match: *`). A store that takes such a request
and ignores the condition would let both win, so it is asked first. Credentials come from the environment of each
process, as AWS_ACCESS_KEY_ID, or from the machine's role; nothing of them is sent to the workers or written down.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from quorumlog.client.errors import ConfigError, QuorumlogError
from quorumlog.spark.load.folder import UNDER_WAY

SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss")
MAX_CONDITIONAL_BYTES = 512 * 1024 * 1024  # of a file: a conditional PUT is one request, and holds it in memory
MAX_RETRIES = 4  # of one request, by obstore; the protocol tries again beside it
RETRY_TIMEOUT_S = 30

T = TypeVar("T")


class StoreFailed(QuorumlogError):
    """The object store did not answer, or refused."""


class NoConditionalPut(QuorumlogError):
    """The object store lets two loaders create the same name."""


class ObjectStore:
    """Below one address, as s3://lake/orders. Each process opens it when it first needs it."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._opened: Any = None

    def __getstate__(self) -> str:
        return self._address

    def __setstate__(self, address: str) -> None:
        self._address, self._opened = address, None

    @property
    def address(self) -> str:
        return self._address

    @property
    def _store(self) -> Any:
        if self._opened is None:
            from obstore.store import from_url

            retries: Any = {"max_retries": MAX_RETRIES, "retry_timeout": timedelta(seconds=RETRY_TIMEOUT_S)}
            try:
                self._opened = from_url(self.address, retry_config=retries)
            except Exception as error:  # obstore's errors have no common base here
                raise ConfigError(f"--to {self.address}: {_first_line(error)}") from error
        return self._opened

    def prove(self) -> None:
        """Creates a name twice, and takes it away. Raises NoConditionalPut, StoreFailed."""
        import obstore

        name = f"{UNDER_WAY}/probe-{uuid4().hex}"
        first, second = self._asked(lambda: (self.create(name, b""), self.create(name, b"")))
        self._asked(lambda: obstore.delete(self._store, name))
        if second:
            raise NoConditionalPut(
                f"{self.address}: this store takes a conditional PUT (If-None-Match: *) and ignores the condition, so "
                "two loaders could do harm; use a newer version of it, another store, or a directory"
            )
        if not first:
            raise StoreFailed(f"{self.address}: it could not be written to; look at the address and the credentials")

    def list(self, prefix: str) -> list[str]:
        import obstore

        folder = prefix.rpartition("/")[0]
        pages = self._asked(lambda: list(obstore.list(self._store, prefix=folder or None)))
        names = sorted(str(one["path"]) for page in pages for one in page)
        return [name for name in names if name.startswith(prefix) and not name.startswith(UNDER_WAY)]

    def read(self, name: str) -> bytes | None:
        import obstore

        return self._found(lambda: bytes(obstore.get(self._store, name).bytes()))

    def size(self, name: str) -> int | None:
        import obstore

        return self._found(lambda: int(obstore.head(self._store, name)["size"]))

    def create(self, name: str, data: bytes) -> bool:
        return self._created(name, data)

    def put_file(self, name: str, local: Path, *, replaces: bool) -> bool:
        """A new file above MAX_CONDITIONAL_BYTES is looked for, and then sent in parts and without a condition."""
        import obstore

        if not replaces and local.stat().st_size <= MAX_CONDITIONAL_BYTES:
            return self._created(name, local)
        if not replaces and self.size(name) is not None:
            return False
        self._asked(lambda: obstore.put(self._store, name, local))
        return True

    @contextmanager
    def local_copy(self, name: str) -> Iterator[Path | None]:
        import obstore

        with self.scratch(0) as folder:
            answer = self._found(lambda: obstore.get(self._store, name))
            if answer is None:
                yield None
                return
            with (folder / "copy").open("wb") as file:
                for piece in self._asked(answer.stream):
                    file.write(piece)
            yield folder / "copy"

    def scratch(self, number: int) -> AbstractContextManager[Path]:
        return _temporary()

    def sweep(self, number: int) -> None:
        """Nothing is unfinished in an object store: a name appears with all its bytes."""

    def _created(self, name: str, data: bytes | Path) -> bool:
        """False: it exists, or nobody knows, which is told."""
        import obstore
        from obstore import exceptions

        try:
            obstore.put(self._store, name, data, mode="create")
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            return False
        except exceptions.GenericError as error:
            warnings.warn(f"{self.address}/{name}: {_first_line(error)}", stacklevel=3)
            return False
        except (exceptions.BaseError, OSError) as error:
            raise self._failed(error) from error
        return True

    def _found(self, ask: Callable[[], T]) -> T | None:
        """None if there is no such name."""
        try:
            return self._asked(ask)
        except FileNotFoundError:
            return None

    def _asked(self, ask: Callable[[], T]) -> T:
        from obstore import exceptions

        try:
            return ask()
        except FileNotFoundError:
            raise
        except (exceptions.BaseError, OSError) as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> StoreFailed:
        return StoreFailed(
            f"{self.address}: {_first_line(error)}. Look at the address, and at the credentials in the environment"
        )


@contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="quorumlog-load-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
