"""What the generated table of methods (`services.METHODS`) is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One call of one service.

    service: the fully qualified name, `quorumlog.v1.Quorum`.
    request, response: the dataclass of one message; of each message of a stream where the side streams.
    doc: the comment that the schema gives it.
    """

    service: str
    name: str
    request: type
    response: type
    client_streaming: bool
    server_streaming: bool
    doc: str

    @property
    def path(self) -> str:
        """The call's name on the wire: `/quorumlog.v1.Service/Method`."""
        return f"/{self.service}/{self.name}"
