"""How a log refuses a change, and how it remembers that one failed, or that it cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.files.kept_errors import kept
from quorumlog_storage.rules.failure_rule import Consequence, consequence_of
from quorumlog_storage.segment.log_file import CorruptBatch


class UnexpectedAppend(Exception):
    """Batches that cannot follow the log's end. Nothing was written."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}; fetch again from the log's end")
        self.path, self.reason = path, reason


class LogClosed(Exception):
    """A change of a log that was closed or has failed. `cause` is the first failure, if there was one."""

    def __init__(self, path: str, cause: BaseException | None) -> None:
        why = "is closed" if cause is None else f"failed earlier: {str(cause) or type(cause).__name__}"
        super().__init__(f"{path} {why}; it takes no more changes until it is opened again")
        self.path, self.cause = path, cause


def is_back_pressure(error: BaseException) -> bool:
    """True for an error after which the caller may try again later, if nothing of its change was done."""
    return isinstance(error, DiskError) and consequence_of(error) is Consequence.BACK_PRESSURE


class LogUnreadable(Exception):
    """The disk does not give back what this log holds. Its replica is offline; the directory's others are not.

    path: of the log's directory. log: which was read; None if it could not be opened. Told apart by identity only.
    """

    def __init__(self, path: str, cause: BaseException, log: object | None = None) -> None:
        super().__init__(f"{path} cannot be read: {cause}")
        self.path, self.cause, self.log = path, cause, log


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Around reads of one log's files before anything is changed. Raises LogUnreadable for what concerns them alone."""
    try:
        yield
    except CorruptBatch as error:
        raise LogUnreadable(path, error) from error
    except DiskError as error:
        if consequence_of(error) is Consequence.REPLICA_OFFLINE:
            raise LogUnreadable(path, error) from error
        raise


class ChangeGuard:
    """`with guard:` around everything that changes files of one log.

    After an exception of any kind it is not known what is on disk: the next append could give an offset to a second
    record. So the first failure is remembered, and every later change is refused. The exception itself goes on to the
    caller. What may be refused without harm is checked before the guard is entered.

    One exception: a process that is short of descriptors or memory says nothing about the disk. While the change
    `may_back_out`, such an error leaves the log as it is, and the same change may be tried again.

    on_failure: told of the first failure before the caller is.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.failure: BaseException | None = None
        self.on_failure: Callable[[BaseException], object] = lambda _: None
        self.is_closed = False
        self.may_back_out = False  # set inside the guard: what the change has done so far is complete, or nothing

    def __enter__(self) -> None:
        if self.is_closed or self.failure is not None:
            raise LogClosed(self._path, self.failure)
        self.may_back_out = False

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None and self.failure is None and not (self.may_back_out and is_back_pressure(error)):
            self.failure = kept(error)
            self.on_failure(error)

    def check_open(self) -> None:
        """Raises LogClosed, as entering does."""
        with self:
            pass
