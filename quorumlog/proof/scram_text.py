"""How nodes write SCRAM's messages: their own limits and nonces, and no other identity."""

from __future__ import annotations

from quorumlog.security.sasl.scram_text import BadMessage, text_within, to_base64

MAX_MESSAGE_BYTES = 1024  # a longer message is refused before it is read
NONCE_BYTES = 18  # random bytes of each side
NONCE_CHARACTERS = 24  # of them in base64, which pads nothing here
NO_BINDING = "n,,"  # gs2 header: no channel binding, no other identity
_HEADERS = (NO_BINDING, "y,,")  # y: the client could bind to a TLS channel, which there is not


def read_header(message: str) -> str:
    """The gs2 header with which a client's first message begins. Raises BadMessage."""
    header = message[: len(NO_BINDING)]
    if header not in _HEADERS:
        raise BadMessage("its first message does not begin with `n,,` or `y,,`")
    return header


def text_of(message: bytes) -> str:
    """Raises BadMessage."""
    return text_within(message, MAX_MESSAGE_BYTES)


def new_nonce(random_bytes: bytes) -> str:
    assert len(random_bytes) == NONCE_BYTES
    return to_base64(random_bytes)


def check_nonce(nonce: str) -> str:
    """Raises BadMessage unless the nonce can be a random one of our length."""
    if len(nonce) < NONCE_CHARACTERS or not nonce.isascii() or not nonce.isprintable() or " " in nonce:
        raise BadMessage(f"a nonce of {len(nonce)} characters; {NONCE_CHARACTERS} printable ones are needed")
    return nonce
