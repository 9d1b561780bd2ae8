"""Who makes a call at one listener: the same for gRPC and for the simulation, around `quorumlog.proof`.

A node proves itself by the cluster's secret, or by its certificate, or by either, as `NodeAuth` says. Where it does
both, they have to name the same node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.buffer import Buffer
from quorumlog.proof.call_proof import StreamProof
from quorumlog.proof.node_certificate import IsDenied, check_claim, check_node, none_denied
from quorumlog.proof.server_sessions import Replayed, ServerSessions, StaleProof
from quorumlog.rpc import prove_method
from quorumlog.rpc.caller import Caller, Shown
from quorumlog.rpc.clear_secret import admit
from quorumlog.rpc.proof_log import ProofLog
from quorumlog.rpc.serving.certified import Certified
from quorumlog.rpc.serving.dispatch import Dispatch
from quorumlog.security.node_auth import NodeAuth


class Entry(NamedTuple):
    """stream: for the messages of a stream that this call opens; None: they carry no proof."""

    caller: Caller
    stream: StreamProof | None


class Gate:
    """where: a caller's address, for the log. now_s: the loop's time."""

    def __init__(
        self,
        dispatch: Dispatch,
        random_bytes: Callable[[int], bytes],
        log: ProofLog,
        auth: NodeAuth = NodeAuth.SECRET,
        is_denied: IsDenied = none_denied,
    ) -> None:
        self._dispatch, self._log, self._auth, self.is_denied = dispatch, log, auth, is_denied
        self._sessions: ServerSessions | None = None
        own = dispatch.identity
        if dispatch.listener.internal and own is not None:
            self._sessions = ServerSessions(own.keys, own.cluster_id, random_bytes, own.cluster_incarnation)

    def prove(self, message: bytes, where: str, now_s: float) -> bytes:
        """The answer to one message of a proof (`prove_method`)."""
        assert self._sessions is not None, "a client listener asks for no proof"
        try:
            if not prove_method.is_final(message):
                return self._sessions.begin(message, now_s)
            answer, claimed, refusal = self._sessions.end(message, now_s)
        except StaleProof as error:
            return prove_method.refusal(ApiError(ErrorCode.ILLEGAL_SASL_STATE, str(error)))
        except ApiError as error:
            answer, claimed, refusal = b"", None, error
        if refusal is None:
            return answer
        self._log.refused(self._dispatch.listener, where, claimed, refusal, now_s)
        return prove_method.refusal(refusal)

    @property
    def takes_proofs(self) -> bool:
        return self._sessions is not None and self._auth is not NodeAuth.MTLS

    @property
    def takes_both(self) -> bool:
        """Certificates and, of those who show none, proofs."""
        return self._sessions is not None and self._auth is NodeAuth.BOTH

    def enter(
        self,
        shown: Shown,
        path: str,
        data: Buffer,
        where: str,
        now_s: float,
        certificate: Certified | None = None,
    ) -> Entry:
        """Raises StaleProof; Replayed for a call that came before. data: the request; empty for the opening of a
        stream. certificate: of the caller's connection, which TLS has verified."""
        if self._sessions is None:
            return Entry(Caller(shown.client_id), None)
        try:
            if self._auth.has_certificates and (certificate is not None or self._auth is NodeAuth.MTLS):
                return self._enter_certified(shown, path, data, now_s, certificate)
            if shown.proof is None and shown.claim is not None and self._dispatch.identity is not None:
                return Entry(Caller(shown.client_id, admit(self._dispatch.identity, shown.claim)), None)
            if shown.proof is None:
                reason = f"listener {self._dispatch.listener.name} serves nodes only, and the call carries no proof"
                raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)
            admitted = self._sessions.admit(shown.proof, path, data, now_s)
        except ApiError as error:
            claimed = shown.claim.peer if shown.claim is not None else shown.node
            self._log.refused(self._dispatch.listener, where, claimed, error, now_s)
            if isinstance(error, Replayed):
                raise
            return Entry(Caller(shown.client_id, refusal=error), None)
        return Entry(Caller(shown.client_id, admitted.peer), admitted.stream)

    def _enter_certified(
        self, shown: Shown, path: str, data: Buffer, now_s: float, certificate: Certified | None
    ) -> Entry:
        """Raises ApiError, StaleProof, Replayed."""
        own = self._dispatch.identity
        assert own is not None and self._sessions is not None, "an internal listener has an identity"
        if certificate is None:
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the caller shows no certificate")
        node_id = check_node(certificate.node, certificate.fingerprint, own.cluster_id, self.is_denied)
        stream, claim = None, shown.node
        if shown.proof is not None and self.takes_proofs:
            admitted = self._sessions.admit(shown.proof, path, data, now_s)
            stream, claim = admitted.stream, admitted.peer
        peer = check_claim(claim, node_id, own.cluster_id, own.cluster_incarnation)
        return Entry(Caller(shown.client_id, peer), stream)
