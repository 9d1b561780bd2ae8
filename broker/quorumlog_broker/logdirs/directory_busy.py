"""How a log directory says that it can do something later, but not now. That is no error of its disk."""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode


class Busy(ApiError):
    """There was no room in time, or the process is short of descriptors or memory. Nothing was done.

    REQUEST_TIMED_OUT: Kafka's producers and admin clients send the same request again (decision 0020). Who answers a
    fetch or an offset query says it in another way, because consumers do not expect that code there.
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)
