"""The client's side of a login by OAUTHBEARER (RFC 7628). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quorumlog.security.sasl.mechanism import OAUTHBEARER, LoginError
from quorumlog.security.sasl.oauth_message import END, BadMessage, write_token_message
from quorumlog.security.secret import Secret

MAX_REFUSAL_BYTES = 500


class OauthClient:
    """refusal: what the server says of a token that it refuses; its own words. on_refusal: called then.

    Raises LoginError for a token or an extension that the message cannot hold.
    """

    name = OAUTHBEARER

    def __init__(
        self,
        token: Secret,
        extensions: Mapping[str, str] | None = None,
        on_refusal: Callable[[], None] | None = None,
    ) -> None:
        try:
            self._first = Secret(write_token_message(token, extensions or {}).decode())
        except BadMessage as error:
            raise LoginError(f"{OAUTHBEARER}: {error}") from None
        self.refusal, self._on_refusal = "", on_refusal

    def first(self) -> bytes:
        return self._first.reveal().encode()

    def step(self, message: bytes) -> bytes | None:
        """A message of the server refuses the token. This side ends the exchange by END, and the server by its error;
        if it does not, the next call raises LoginError."""
        if self.refusal:
            raise LoginError("the server refused the token, and went on all the same")
        if not message:
            return None
        self.refusal = ascii(message[:MAX_REFUSAL_BYTES].decode("utf-8", "replace"))
        if self._on_refusal is not None:
            self._on_refusal()
        return END
