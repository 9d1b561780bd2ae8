"""SCRAM credentials of users (KIP-554). Field by field these are Kafka's messages under our names.

The active controller changes them; every broker describes them from its own metadata.

Written by `./dev proto` from proto/quorumlog/v1/credentials.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsRequest:
    """users: None: all users."""

    users: tuple[ScramUserName, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ScramUserName:
    name: str


@message(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsResponse:
    """Neither salts nor keys leave the cluster."""

    error_code: int = 0
    error_message: str = ""
    results: tuple[DescribedScramUser, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class DescribedScramUser:
    """error_code: RESOURCE_NOT_FOUND: there is no such user; DUPLICATE_RESOURCE: it was named twice."""

    user: str
    error_code: int = 0
    error_message: str = ""
    credential_infos: tuple[ScramCredentialInfo, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ScramCredentialInfo:
    """mechanism: 1: SCRAM-SHA-256; 2: SCRAM-SHA-512."""

    mechanism: int
    iterations: int


@message(frozen=True, slots=True, kw_only=True)
class AlterUserScramCredentialsRequest:
    """A user may be named once. What is right takes effect together; each user that is refused has an error of its
    own.
    """

    deletions: tuple[ScramDeletion, ...] = ()
    upsertions: tuple[ScramUpsertion, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ScramDeletion:
    name: str
    mechanism: int


@message(frozen=True, slots=True, kw_only=True)
class ScramUpsertion:
    """iterations: 4096 to 16384, inclusive.
    salted_password: As good as the password: who knows it can log in. So it is taken over TLS or from the same
    machine only.
    """

    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


@message(frozen=True, slots=True, kw_only=True)
class AlterUserScramCredentialsResponse:
    error_code: int = 0
    error_message: str = ""
    results: tuple[AlteredScramUser, ...] = ()
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class AlteredScramUser:
    """error_code: UNACCEPTABLE_CREDENTIAL, UNSUPPORTED_SASL_MECHANISM, RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE,
    UNSUPPORTED_VERSION.
    """

    user: str
    error_code: int = 0
    error_message: str = ""
