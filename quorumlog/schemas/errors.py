"""What can go wrong with a schema: the registry, the bytes, or the value."""

from __future__ import annotations

from quorumlog.client.errors import QuorumlogError


class SchemaError(QuorumlogError):
    """Base of every error of this room."""


class RegistryUnavailable(SchemaError):
    """No address of the registry gave an answer. A later try may get one."""


class RegistryRefused(SchemaError):
    """The registry answered, and said no.

    status: of HTTP. code: the registry's error_code; 0: it told none.
    """

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(f"the schema registry answered {code or status}: {message}")
        self.status, self.code, self.message = status, code, message


class SchemaNotFound(RegistryRefused):
    """There is no such subject, version or id."""


class IncompatibleSchema(RegistryRefused):
    """The subject's rule of compatibility refuses the schema. The message says which change it is, if it was told."""


class RegistryForbids(RegistryRefused):
    """The registry does not know this client, or does not let it do that."""


class BadSchema(SchemaError):
    """A schema that cannot be read, or that the registry calls invalid."""


class BadFrame(SchemaError):
    """The bytes do not begin as a serializer for a registry writes them."""


class BadData(SchemaError):
    """The bytes are not what their schema says."""


class BadValue(SchemaError):
    """A value does not fit its schema: it was not encoded."""


class MissingPackage(SchemaError):
    """The extra `schema` is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(f"schemas need {package}: pip install 'quorumlog[schema]'")
