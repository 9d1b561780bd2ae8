"""Turns errors into an exit code and a message. The codes are stable, because scripts rely on them.

Errors are recognized by class names. Importing the classes would load the client for commands that never use it.
"""

from __future__ import annotations

import json
import sys
import traceback
from enum import IntEnum

from quorumlog.errors import ErrorCode
from quorumlog_cli.terminal import output


class Exit(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    DATA_INVALID = 4
    UNHEALTHY = 5
    PRECONDITION = 6
    NOT_FOUND = 7
    NOT_AUTHORISED = 8
    PARTIAL = 9
    TIMED_OUT = 10
    INTERRUPTED = 130


class CliError(Exception):
    """A command's own error. hint: what to do about it, if known."""

    def __init__(self, code: Exit, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


_BY_CLASS = {
    "quorumlog.client.errors.NoProtocol": Exit.PRECONDITION,
    "quorumlog.client.errors.AuthenticationFailed": Exit.NOT_AUTHORISED,
    "quorumlog.client.errors.Unavailable": Exit.UNREACHABLE,
    "quorumlog.client.errors.WrongCluster": Exit.UNREACHABLE,
    "quorumlog.client.errors.DeliveryTimeout": Exit.TIMED_OUT,
    "quorumlog.client.errors.ConfigError": Exit.USAGE,
    "quorumlog.client.errors.RecordTooLarge": Exit.USAGE,
    "quorumlog.client.errors.BufferExhausted": Exit.TIMED_OUT,
    "quorumlog.rpc.transport.DoesNotFit": Exit.USAGE,
    "quorumlog.rpc.transport.NotAuthenticated": Exit.NOT_AUTHORISED,
    "quorumlog.rpc.transport.NotServed": Exit.PRECONDITION,
    "quorumlog.rpc.transport.NotDelivered": Exit.UNREACHABLE,
    "quorumlog.rpc.transport.OutcomeUnknown": Exit.TIMED_OUT,
    "quorumlog.records.format.corrupt.CorruptRecords": Exit.DATA_INVALID,
    "quorumlog.schemas.errors.RegistryUnavailable": Exit.UNREACHABLE,
    "quorumlog.schemas.errors.RegistryForbids": Exit.NOT_AUTHORISED,
    "quorumlog.schemas.errors.SchemaNotFound": Exit.NOT_FOUND,
    "quorumlog.schemas.errors.IncompatibleSchema": Exit.PRECONDITION,
    "quorumlog.schemas.errors.MissingPackage": Exit.PRECONDITION,
    "quorumlog.schemas.errors.SchemaError": Exit.DATA_INVALID,
    "quorumlog.security.tls.errors.BadTls": Exit.DATA_INVALID,
    "quorumlog.security.tls.errors.BadRequest": Exit.USAGE,
    "quorumlog.security.tls.errors.AlreadyThere": Exit.PRECONDITION,
    "quorumlog.security.tls.errors.NotThere": Exit.NOT_FOUND,
    "quorumlog.spark.mirror.job.SameCluster": Exit.PRECONDITION,
    "quorumlog.spark.mirror.kept.SideMadeAnew": Exit.PRECONDITION,
    "quorumlog.spark.load.choosing.CannotLoad": Exit.PRECONDITION,
    "quorumlog.spark.load.choosing.LostBeforeLoad": Exit.PRECONDITION,
    "quorumlog.spark.load.object_store.NoConditionalPut": Exit.PRECONDITION,
    "quorumlog.spark.load.object_store.StoreFailed": Exit.UNREACHABLE,
    "quorumlog.spark.load.protocol.StoreUnclear": Exit.TIMED_OUT,
    "quorumlog.spark.load.folder.BadRecord": Exit.DATA_INVALID,
    "quorumlog.spark.load.store.NoLinks": Exit.PRECONDITION,
    "quorumlog.testing.layout.NotThere": Exit.NOT_FOUND,
    "quorumlog.testing.layout.LayoutError": Exit.PRECONDITION,
    "quorumlog.testing.nodes.NodeEnded": Exit.FAILED,
    "quorumlog.testing.ports.NoFreePorts": Exit.PRECONDITION,
    "quorumlog.testing.waiting.TimedOut": Exit.TIMED_OUT,
    "quorumlog_quorum.metadata.frame.BadRecord": Exit.DATA_INVALID,
    "quorumlog_quorum.metadata.frame.ReplayError": Exit.DATA_INVALID,
    "quorumlog_quorum.metadata.unsupported.UnsupportedMetadata": Exit.PRECONDITION,
    "quorumlog_quorum.raft.quorum_state.QuorumStateNotRenewed": Exit.PRECONDITION,
    "quorumlog_server.directories.first_voters.FormatRefused": Exit.USAGE,
    "quorumlog_quorum.offline.lost_majority.RecoveryRefused": Exit.PRECONDITION,
    "quorumlog_quorum.offline.metadata_survey.MetadataGap": Exit.DATA_INVALID,
    "quorumlog_quorum.snapshots.opening.SnapshotMissing": Exit.PRECONDITION,
    "quorumlog_storage.files.disk.DirectoryLocked": Exit.PRECONDITION,
    "quorumlog_storage.files.disk.DiskError": Exit.PRECONDITION,
    "quorumlog_storage.directory.directory.AlreadyFormatted": Exit.PRECONDITION,
    "quorumlog_storage.directory.directory.NotFormatted": Exit.PRECONDITION,
    "quorumlog_storage.directory.meta_properties.WrongDirectory": Exit.PRECONDITION,
    "quorumlog_storage.files.properties.BadProperties": Exit.DATA_INVALID,
    "quorumlog_storage.segment.log_file.CorruptBatch": Exit.DATA_INVALID,
    "quorumlog_server.config.properties.ConfigError": Exit.USAGE,
    "builtins.FileNotFoundError": Exit.NOT_FOUND,
    "builtins.PermissionError": Exit.NOT_AUTHORISED,
    "builtins.TimeoutError": Exit.TIMED_OUT,
    "builtins.UnicodeEncodeError": Exit.USAGE,  # of an argument: output can show everything (`output.show_all_signs`)
    "builtins.KeyboardInterrupt": Exit.INTERRUPTED,
}

_BY_ERROR_CODE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Exit.NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_ID: Exit.NOT_FOUND,
    ErrorCode.RESOURCE_NOT_FOUND: Exit.NOT_FOUND,
    ErrorCode.BROKER_ID_NOT_REGISTERED: Exit.NOT_FOUND,
    ErrorCode.VOTER_NOT_FOUND: Exit.NOT_FOUND,
    ErrorCode.LOG_DIR_NOT_FOUND: Exit.NOT_FOUND,
    ErrorCode.REPLICA_NOT_AVAILABLE: Exit.NOT_FOUND,
    ErrorCode.OFFSET_OUT_OF_RANGE: Exit.NOT_FOUND,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: Exit.NOT_FOUND,
    ErrorCode.GROUP_ID_NOT_FOUND: Exit.NOT_FOUND,
    ErrorCode.INVALID_GROUP_ID: Exit.USAGE,
    ErrorCode.INVALID_REGULAR_EXPRESSION: Exit.USAGE,
    ErrorCode.NON_EMPTY_GROUP: Exit.PRECONDITION,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Exit.UNHEALTHY,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Exit.UNHEALTHY,
    ErrorCode.NOT_COORDINATOR: Exit.UNHEALTHY,
    ErrorCode.INVALID_TXN_STATE: Exit.PRECONDITION,
    ErrorCode.CONCURRENT_TRANSACTIONS: Exit.PRECONDITION,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: Exit.PRECONDITION,
    ErrorCode.INVALID_PRODUCER_EPOCH: Exit.PRECONDITION,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: Exit.NOT_AUTHORISED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Exit.NOT_AUTHORISED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Exit.NOT_AUTHORISED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Exit.NOT_AUTHORISED,
    ErrorCode.SASL_AUTHENTICATION_FAILED: Exit.NOT_AUTHORISED,
    ErrorCode.POLICY_VIOLATION: Exit.PRECONDITION,
    ErrorCode.SECURITY_DISABLED: Exit.PRECONDITION,
    ErrorCode.REQUEST_TIMED_OUT: Exit.TIMED_OUT,
    ErrorCode.CORRUPT_MESSAGE: Exit.DATA_INVALID,
    ErrorCode.INVALID_RECORD: Exit.DATA_INVALID,
    ErrorCode.NOT_ENOUGH_REPLICAS: Exit.UNHEALTHY,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Exit.UNHEALTHY,
    ErrorCode.LEADER_NOT_AVAILABLE: Exit.UNHEALTHY,
    ErrorCode.NOT_CONTROLLER: Exit.UNHEALTHY,
    ErrorCode.BROKER_NOT_AVAILABLE: Exit.UNHEALTHY,
    ErrorCode.KAFKA_STORAGE_ERROR: Exit.UNHEALTHY,
    ErrorCode.INVALID_TOPIC_EXCEPTION: Exit.USAGE,
    ErrorCode.INVALID_PARTITIONS: Exit.USAGE,
    ErrorCode.INVALID_CONFIG: Exit.USAGE,
    ErrorCode.INVALID_UPDATE_VERSION: Exit.PRECONDITION,
    ErrorCode.INVALID_REQUEST: Exit.USAGE,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: Exit.USAGE,
    ErrorCode.TOPIC_ALREADY_EXISTS: Exit.PRECONDITION,
    ErrorCode.INVALID_REPLICATION_FACTOR: Exit.PRECONDITION,
    ErrorCode.MESSAGE_TOO_LARGE: Exit.PRECONDITION,
    ErrorCode.UNSUPPORTED_VERSION: Exit.PRECONDITION,
    ErrorCode.DUPLICATE_VOTER: Exit.PRECONDITION,
}

_HINTS = {
    Exit.UNREACHABLE: "quorumlog broker list shows which brokers run; quorumlog up starts a cluster here; "
    "quorumlog profile list shows the known clusters",
    Exit.UNHEALTHY: "quorumlog status shows which node is missing",
}
_HINTS_BY_ERROR_CODE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "quorumlog topic list shows what there is",
    ErrorCode.GROUP_ID_NOT_FOUND: "quorumlog group list shows what there is",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "quorumlog transaction list shows what there is",
}


def exit_code(error: BaseException) -> Exit:
    """The exit code of any error; FAILED for an unexpected one."""
    if isinstance(error, CliError):
        return error.code
    if _is_usage(error):
        return Exit.USAGE
    code = getattr(error, "code", None)
    if isinstance(code, ErrorCode):
        return _BY_ERROR_CODE.get(code, Exit.FAILED)
    if type(error).__name__ == "Unavailable" and type(error.__cause__).__name__ == "OutcomeUnknown":
        return Exit.TIMED_OUT  # the broker was reached and did not answer in time
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)
    return next((_BY_CLASS[name] for name in names if name in _BY_CLASS), Exit.FAILED)


def report(error: BaseException) -> int:
    """Print the error on stderr, in the requested format. Returns the exit code."""
    code = exit_code(error)
    if _only_help(error):
        if said := _message(error):  # empty if the help was printed already
            print(said, file=sys.stderr)
        return Exit.USAGE
    if type(error).__name__ == "Abort":
        code = Exit.INTERRUPTED
    message, hint = _message(error), _hint(error, code)
    if output.is_json():
        print(json.dumps(_as_json(error, code, message, hint)), file=sys.stderr)
    elif code is Exit.INTERRUPTED:
        print("interrupted", file=sys.stderr)
    else:
        if code is Exit.FAILED and _unexpected(error):
            traceback.print_exception(error)
        output.complain(message, hint)
    return code


def _hint(error: BaseException, code: Exit) -> str:
    """What to do next: the error's own words, or those for its kind; empty if there are none."""
    kind = getattr(error, "code", None)
    by_kind = _HINTS_BY_ERROR_CODE.get(kind, "") if isinstance(kind, ErrorCode) else ""
    return getattr(error, "hint", "") or by_kind or _HINTS.get(code, "")


def _as_json(error: BaseException, code: Exit, message: str, hint: str) -> dict[str, object]:
    said: dict[str, object] = {"exit_code": int(code), "kind": code.name.lower(), "message": message}
    kafka_code = getattr(error, "code", None)
    if isinstance(kafka_code, ErrorCode):
        said["error"] = kafka_code.name
    if hint:
        said["hint"] = hint
    return {"error": said}


def _message(error: BaseException) -> str:
    if _is_usage(error):
        return _usage_message(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, UnicodeEncodeError):
        return f"{error.object!a} is not UTF-8"
    return str(error) or type(error).__name__


def _is_usage(error: BaseException) -> bool:
    """An error of typer about the arguments. Its class is in different packages, depending on the release."""
    return hasattr(error, "format_message") and hasattr(error, "ctx")


def _only_help(error: BaseException) -> bool:
    return type(error).__name__ == "NoArgsIsHelpError"


def _usage_message(error: BaseException) -> str:
    text = str(error.format_message())  # type: ignore[attr-defined]
    context = error.ctx  # type: ignore[attr-defined]
    if context is None or _only_help(error):
        return text
    end = "" if text.endswith((".", "?")) else "."
    return f"{text}{end} See: {context.command_path} --help"


def _unexpected(error: BaseException) -> bool:
    """True for an exception that was not raised on purpose; its stack trace is printed."""
    ours = ("quorumlog.", "quorumlog_")
    return not isinstance(error, CliError | OSError) and not type(error).__module__.startswith(ours)
