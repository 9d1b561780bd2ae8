"""The one method of gRPC that is not in the schema: a message of the proof in, the server's answer out.

Only internal listeners serve it. It carries SCRAM's messages as they are. A refusal is `e=code text`.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode

SERVICE, NAME = "quorumlog.v1.Proof", "Prove"
PATH = f"/{SERVICE}/{NAME}"
_FINAL, _REFUSAL = b"c=", b"e="


def is_final(message: bytes) -> bool:
    """True for a caller's second and last message."""
    return message.startswith(_FINAL)


def refusal(error: ApiError) -> bytes:
    return _REFUSAL + f"{int(error.code)} {error.message}".encode()


def read_answer(answer: bytes) -> bytes:
    """The answer, if it is none that refuses; raises ApiError, with what the server says."""
    if not answer.startswith(_REFUSAL):
        return answer
    code, _, text = answer[len(_REFUSAL) :].decode("utf-8", errors="replace").partition(" ")
    known = {str(int(each)): each for each in ErrorCode}
    raise ApiError(known.get(code, ErrorCode.CLUSTER_AUTHORIZATION_FAILED), text)
