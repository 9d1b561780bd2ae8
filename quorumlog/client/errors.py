"""What a client tells its user. Every error of the package is a `QuorumlogError`."""

from __future__ import annotations

from quorumlog.errors import ErrorCode


class QuorumlogError(Exception):
    """Base of everything that a client raises on purpose."""


class Unavailable(QuorumlogError):
    """No broker could be reached, or no leader was found, within the time given."""


class RequestFailed(QuorumlogError):
    """The cluster answered with an error.

    outcome_unknown: the request, or an earlier try of it, may have been carried out all the same.
    """

    def __init__(self, code: ErrorCode, message: str, *, outcome_unknown: bool = False) -> None:
        super().__init__(f"{code.name}: {message}" if message else code.name)
        self.code = code
        self.message = message
        self.outcome_unknown = outcome_unknown


class DeliveryTimeout(QuorumlogError):
    """A record could not be delivered within `delivery.timeout.ms`.

    outcome_unknown: at least one try may have reached the log.
    """

    def __init__(self, message: str, *, outcome_unknown: bool) -> None:
        super().__init__(message)
        self.outcome_unknown = outcome_unknown


class BufferExhausted(QuorumlogError):
    """`buffer.memory` stayed full for `max.block.ms`: the cluster takes less than the application sends."""


class RecordTooLarge(QuorumlogError):
    """A record that no batch may hold (`max.request.size`); it was not sent."""


class ConfigError(QuorumlogError, ValueError):
    """An option that does not exist or has an impossible value."""


class ClientClosed(QuorumlogError):
    """The client was closed before or while the call ran."""
