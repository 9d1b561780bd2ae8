"""Where a load is kept: the calls that its protocol needs, and a directory that has them (`object_store`: another).

Of two who create the same name one wins: a finished temporary file is linked to it, which fails if it exists (POSIX
`link`). What has a name is whole and on the disk: the file is synced before it gets the name, and the folder behind.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from quorumlog.client.errors import ConfigError, QuorumlogError
from quorumlog.spark.durable import make_folders, sync
from quorumlog.spark.load.folder import UNDER_WAY

SWEPT_AFTER_S = 24 * 3600  # a loader that is slower than another one may still write there
_WITHOUT_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK)


class NoLinks(QuorumlogError):
    """The file system cannot create a file under a name only if there is none."""


class StoreRefused(QuorumlogError):
    """The directory could not be read or written."""


class Store(Protocol):
    """Names are paths with slashes below the store's address. It is pickled to the workers."""

    @property
    def address(self) -> str: ...

    def prove(self) -> None:
        """Raises QuorumlogError if it does not hold what a load needs."""

    def list(self, prefix: str) -> list[str]:
        """Every name that begins so, in order."""

    def read(self, name: str) -> bytes | None: ...

    def size(self, name: str) -> int | None:
        """Bytes; None if there is no such name."""

    def create(self, name: str, data: bytes) -> bool:
        """False: it exists, or nobody knows."""

    def put_file(self, name: str, local: Path, *, replaces: bool) -> bool:
        """Give the bytes of a local file this name. False: as for `create`; `local` may be gone then or not."""

    def local_copy(self, name: str) -> AbstractContextManager[Path | None]:
        """A file to read, while the context lasts; None if there is no such name."""

    def scratch(self, number: int) -> AbstractContextManager[Path]:
        """A folder for files that load `number` writes and then puts."""

    def sweep(self, number: int) -> None:
        """Remove what loads up to this number have left in their scratch folders, if nobody can be at it any more."""


def open_store(place: str) -> Store:
    """place: a directory, or an address such as s3://lake/orders. Raises ConfigError."""
    scheme, colon, rest = place.partition("://")
    if not colon:
        return DirectoryStore(os.path.abspath(place))
    if scheme == "file":
        return DirectoryStore(os.path.abspath(rest))
    from quorumlog.spark.load.object_store import SCHEMES, ObjectStore

    if scheme not in SCHEMES:
        known = ", ".join(f"{one}://" for one in ("file", *SCHEMES))
        raise ConfigError(f"--to {place}: {scheme}:// is not known; give a directory, or an address with {known}")
    if find_spec("obstore") is None:
        raise ConfigError(f"--to {place}: object stores need obstore: pip install 'quorumlog[lake]'")
    return ObjectStore(place.rstrip("/"))


class DirectoryStore:
    """Below one folder, which all workers must share. Its methods raise StoreRefused, but for what `scratch` holds."""

    def __init__(self, root: str) -> None:
        self.root = root

    @property
    def address(self) -> str:
        return self.root

    def prove(self) -> None:
        """Nothing has to be tried: a file system without links says so."""

    def list(self, prefix: str) -> list[str]:
        top = self._path(prefix.rpartition("/")[0])
        found = []
        with self._explained():
            for folder, folders, files in os.walk(top, onerror=_raise_unless_gone):
                if Path(folder) == self._path(UNDER_WAY):
                    folders.clear()
                    continue
                found += [(Path(folder) / file).relative_to(self.root).as_posix() for file in files]
        return sorted(name for name in found if name.startswith(prefix))

    def read(self, name: str) -> bytes | None:
        with self._explained():
            try:
                return self._path(name).read_bytes()
            except FileNotFoundError:
                return None

    def size(self, name: str) -> int | None:
        with self._explained():
            try:
                return self._path(name).stat().st_size
            except FileNotFoundError:
                return None

    def create(self, name: str, data: bytes) -> bool:
        with self._explained(), self.scratch(0) as folder:
            local = folder / "object"
            local.write_bytes(data)
            return self.put_file(name, local, replaces=False)

    def put_file(self, name: str, local: Path, *, replaces: bool) -> bool:
        target = self._path(name)
        with self._explained():
            make_folders(target.parent)
            sync(local)
            if replaces:
                os.replace(local, target)
            else:
                try:
                    os.link(local, target)
                except FileExistsError:
                    return False
            sync(target.parent)
        return True

    @contextmanager
    def local_copy(self, name: str) -> Iterator[Path | None]:
        path = self._path(name)
        yield path if path.is_file() else None

    @contextmanager
    def scratch(self, number: int) -> Iterator[Path]:
        folder = self._path(f"{UNDER_WAY}/{number:08}-{uuid4().hex}")
        with self._explained():
            folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            _remove(folder)

    def sweep(self, number: int) -> None:
        """What another user has left, and only that user may remove, stays."""
        under_way = self._path(UNDER_WAY)
        with self._explained():
            for folder in sorted(under_way.iterdir()) if under_way.is_dir() else ():
                left_by = folder.name.partition("-")[0]
                if left_by.isdecimal() and int(left_by) <= number and _age_s(folder) > SWEPT_AFTER_S:
                    with suppress(PermissionError):
                        _remove(folder)

    def _path(self, name: str) -> Path:
        return Path(self.root) / name

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raises NoLinks, StoreRefused in place of what the system says."""
        try:
            yield
        except OSError as error:
            if error.filename2 is not None and error.errno in _WITHOUT_LINKS:
                raise NoLinks(
                    f"{self.root}: this file system makes no hard links here ({error.strerror}), by which a file gets "
                    "its name only once; load into a folder of another file system, or into an object store"
                ) from error
            raise StoreRefused(
                f"{error.filename2 or error.filename or self.root}: {error.strerror or error}. Look at the folder "
                "--to, its rights and the space on its disk, then load again: what was planned is done first"
            ) from error


def _raise_unless_gone(error: OSError) -> None:
    """A folder that cannot be read must not be taken for an empty one."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _age_s(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _remove(folder: Path) -> None:
    """Of two loaders that sweep at once each may find that the other was faster."""
    if folder.is_dir():
        for file in sorted(folder.iterdir()):
            file.unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()
