"""How a log refuses a change, and how it remembers that one failed."""

from __future__ import annotations

from collections.abc import Callable


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


class ChangeGuard:
    """`with guard:` around everything that changes files of one log.

    After an exception of any kind it is not known what is on disk: the next append could give an offset to a second
    record. So the first failure is remembered, and every later change is refused. The exception itself goes on to the
    caller. What may be refused without harm is checked before the guard is entered.

    on_failure: told of the first failure before the caller is.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.failure: BaseException | None = None
        self.on_failure: Callable[[BaseException], object] = lambda _: None
        self.is_closed = False

    def __enter__(self) -> None:
        if self.is_closed or self.failure is not None:
            raise LogClosed(self._path, self.failure)

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None and self.failure is None:
            self.failure = error
            self.on_failure(error)

    def check_open(self) -> None:
        """Raises LogClosed, as entering does."""
        with self:
            pass
