"""One request on its way through the controller: which answer its caller gets, and when."""

from __future__ import annotations

from typing import Any, Protocol

from quorumlog.errors import ApiError
from quorumlog.ids import Offset
from quorumlog.rpc.transport import Context
from quorumlog_quorum.controller.requests.requests import Rule
from quorumlog_quorum.controller.shell.commit_waiters import Answer
from quorumlog_quorum.metadata.image import Image


class Calls(Protocol):
    """What a call needs of the service."""

    def on_accepted(self, call: Call) -> None: ...

    def on_refused(self, call: Call, error: ApiError) -> None: ...

    def await_commit(self, end_offset: Offset, response: Any, answer: Answer) -> None:
        """For an answer to what has written records: their commit proves that this controller was active."""

    def await_confirmation(self, outcome: Any, answer: Answer) -> None:
        """For an answer from the tip alone, a response or an ApiError: it may be stale."""

    def leadership_lost(self, *, unknown: bool) -> ApiError:
        """Leadership is lost. unknown: the records may survive, and repeating the request may do harm."""


class Call:
    """A `Caller` of an operation."""

    def __init__(self, calls: Calls, context: Context, request: Any, rule: Rule, answer: Answer) -> None:
        self.context = context
        self.request = request
        self.rule = rule
        self.answer = answer
        self.is_refused = False
        self._calls = calls

    @property
    def gone(self) -> bool:
        return self.answer.given

    def accepted(self) -> None:
        self._calls.on_accepted(self)

    def refused(self, error: ApiError) -> None:
        self.is_refused = True
        self._calls.on_refused(self, error)
        self._calls.await_confirmation(error, self.answer)

    def performed(self, response: Any, tip: Image, wrote: bool) -> None:
        assert isinstance(response, self.rule.response), f"{type(response).__name__} answers {self.rule.request}"
        if wrote or not self.rule.needs_confirmation(response):
            self._calls.await_commit(tip.offset, response, self.answer)
        else:
            self._calls.await_confirmation(response, self.answer)

    def dropped(self, wrote: bool) -> None:
        self.answer.fail(self._calls.leadership_lost(unknown=wrote and not self.rule.retry_safe))
