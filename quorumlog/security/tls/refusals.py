"""Why a TLS handshake failed, in words that name the cure: of the certificate that we refused, or of the alert that
came from the other side.

Under TLSv1.3 a server judges a client's certificate after the client's handshake has ended well; its alert comes with
the first read, and this reads it all the same.
"""

from __future__ import annotations

import ssl

from quorumlog.security.tls.settings import ENDPOINT, STRICT, TRUSTSTORE

# Numbers of X509_V_ERR of OpenSSL: what is wrong, and what to do
_VERIFY = {
    2: ("its issuer is not among the trusted authorities", f"add the authority to {TRUSTSTORE}"),
    7: ("its signature is wrong", "an authority of the same name with another key is trusted: renew {trust}"),
    9: ("it is not valid yet", "check the clocks of both machines"),
    10: ("it has expired", "renew it, or check the clock of this machine"),
    18: ("it is signed by itself and not trusted", f"add it to {TRUSTSTORE} if it is the right one"),
    19: ("it ends at an authority that is not trusted", f"add the authority to {TRUSTSTORE} if it is the right one"),
    20: ("its issuer is not among the trusted authorities", f"add the authority to {TRUSTSTORE}"),
    21: ("its issuer is not among the trusted authorities", f"add the authority to {TRUSTSTORE}"),
    26: ("it is not made for this use", "an extended key usage of serverAuth or clientAuth is missing in it"),
    62: (
        "it names other hosts than the one asked for",
        f"use a name that it has; {ENDPOINT} decides whether that counts",
    ),
    64: (
        "it has no address entry (IP) for the address asked for",
        f"issue it with that address, or use a name that it has; {ENDPOINT} decides whether that counts",
    ),
}
# What VERIFY_X509_STRICT asks for, by OpenSSL's message: the extension
_STRICT = {
    "missing authority key identifier": "authorityKeyIdentifier",
    "missing subject key identifier": "subjectKeyIdentifier",
    "ca cert does not include key usage extension": "keyUsage of the authority",
    "basic constraints of ca cert not marked critical": "critical mark of the authority's basicConstraints",
    "path length given without key usage keycertsign": "keyCertSign of the authority's keyUsage",
    "path length invalid for non-ca cert": "right basicConstraints",
    "key usage keycertsign invalid for non-ca cert": "right keyUsage: keyCertSign is for authorities",
    "authority key identifier marked critical": "uncritical authorityKeyIdentifier",
    "subject key identifier marked critical": "uncritical subjectKeyIdentifier",
    "issuer name empty": "issuer's name",
    "subject name empty": "subject's name",
    "using cert extension requires at least x509v3": "version 3",
}
_ALERTS = {  # OpenSSL's names for alerts that the other side sent
    "CERTIFICATE_REQUIRED": "the other side asks for a certificate: set ssl.keystore.location",
    "UNKNOWN_CA": "the other side does not trust the authority of the certificate that was shown to it",
    "CERTIFICATE_EXPIRED": "the certificate that was shown to the other side has expired: renew it",
    "CERTIFICATE_REVOKED": "the certificate that was shown to the other side is revoked",
    "BAD_CERTIFICATE": "the other side refuses the certificate that was shown to it, or asks for one",
    "CERTIFICATE_UNKNOWN": "the other side refuses the certificate that was shown to it",
    "UNSUPPORTED_CERTIFICATE": "the other side does not take certificates of this kind or for this use",
    "ACCESS_DENIED": "the other side knows the certificate that was shown to it and lets it not in",
    "DECRYPT_ERROR": "the other side finds a signature of the certificate that was shown to it, or of its key, wrong",
    "UNKNOWN_PSK_IDENTITY": "the other side does not know the session",
}
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "BAD_RECORD_TYPE")
_OTHERS = {
    "WRONG_VERSION_NUMBER": "the other side does not speak TLS here: a plain listener, or another port",
    "HTTP_REQUEST": "the other side speaks HTTP without TLS",
    "UNSUPPORTED_PROTOCOL": "the other side speaks an older TLS only: 1.2 or 1.3 is needed",
    "PROTOCOL_VERSION": "both sides have no version of TLS in common: see ssl.enabled.protocols",
    "NO_SHARED_CIPHER": "both sides have no cipher suite in common: see ssl.cipher.suites",
    "HANDSHAKE_FAILURE": "the other side found nothing in common, or asks for a certificate",
    "NO_PROTOCOLS_AVAILABLE": "no version of TLS is left by ssl.enabled.protocols and this machine's OpenSSL",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client showed no certificate, and ssl.client.auth=required",
}


def why_failed(error: ssl.SSLError) -> str:
    """One sentence, without the peer's address."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _why_refused(error)
    name = _alert(error)
    if name is not None:
        return _ALERTS[name]
    reason = error.reason or ""
    found = next((text for key, text in _OTHERS.items() if reason.endswith(key)), None)
    return found or f"TLS failed: {reason or error}"


def is_of_a_certificate(error: ssl.SSLError) -> bool:
    """One side refused the other's certificate: trying again with the same ones is no use."""
    return isinstance(error, ssl.SSLCertVerificationError) or _alert(error) is not None


def speaks_no_tls(error: ssl.SSLError) -> bool:
    """What the other side has sent is no TLS."""
    return any(word in (error.reason or "") for word in _NO_TLS)


def _alert(error: ssl.SSLError) -> str | None:
    """The name of an alert about a certificate. OpenSSL writes them as in TLSV13_ALERT_CERTIFICATE_REQUIRED."""
    reason = error.reason or ""
    _, found, name = reason.partition("_ALERT_")
    return name if found and name in _ALERTS else None


def missing_extension(error: ssl.SSLCertVerificationError) -> str | None:
    """What a strict side finds missing in a certificate of the other one; None: it refuses it for another reason."""
    return _STRICT.get(str(error.verify_message or "").rstrip(".").lower())


def _why_refused(error: ssl.SSLCertVerificationError) -> str:
    message = str(error.verify_message or "").rstrip(".")
    if extension := missing_extension(error):
        return (
            f"the other side's certificate is refused: it lacks the {extension}. Issue it anew, or set {STRICT}=false"
        )
    if error.verify_code in _VERIFY:
        what, cure = _VERIFY[error.verify_code]
        return f"the other side's certificate is refused: {what}; {cure.format(trust=TRUSTSTORE)}"
    return f"the other side's certificate is refused: {message or error.reason}"
