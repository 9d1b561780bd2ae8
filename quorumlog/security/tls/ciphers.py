"""`ssl.cipher.suites`: names of IANA, which Kafka and Java use, and those of OpenSSL, which librdkafka uses.

Of TLS 1.2 only: Python can choose no suites of TLS 1.3, and all three of them are sound.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from quorumlog.security.tls.errors import BadTls

_OF_1_3 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_CCM_SHA256",
           "TLS_AES_128_CCM_8_SHA256")  # fmt: skip
_CODES = (
    ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
    ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
    ("AES_128_CCM", "AES128-CCM"),
    ("AES_256_CCM", "AES256-CCM"),
    ("AES_128_CBC_SHA256", "AES128-SHA256"),
    ("AES_256_CBC_SHA384", "AES256-SHA384"),
    ("AES_256_CBC_SHA256", "AES256-SHA256"),
    ("AES_128_CBC_SHA", "AES128-SHA"),
    ("AES_256_CBC_SHA", "AES256-SHA"),
    ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
)
_EXCHANGES = {
    "ECDHE_ECDSA": "ECDHE-ECDSA-",
    "ECDHE_RSA": "ECDHE-RSA-",
    "DHE_RSA": "DHE-RSA-",
    "RSA": "",
}
_LACKING = {  # what IANA does not have
    "ECDHE_ECDSA": ("AES_256_CBC_SHA256",),
    "ECDHE_RSA": ("AES_128_CCM", "AES_256_CCM", "AES_256_CBC_SHA256"),
    "DHE_RSA": ("AES_256_CBC_SHA384",),
    "RSA": ("AES_256_CBC_SHA384", "CHACHA20_POLY1305_SHA256"),
}
OPENSSL_NAMES = {
    f"TLS_{exchange}_WITH_{code}": prefix + name
    for exchange, prefix in _EXCHANGES.items()
    for code, name in _CODES
    if code not in _LACKING[exchange]
}


def openssl_ciphers(names: Iterable[str], key: str) -> str:
    """What `SSLContext.set_ciphers` takes, in the order of `names`. key: as messages name it. Raises BadTls."""
    found = []
    for name in names:
        if name in _OF_1_3:
            raise BadTls(
                f"{key}: {name} is a suite of TLS 1.3, and those cannot be chosen; all of them are sound. "
                "Name suites of TLS 1.2 only, or leave the key out"
            )
        if name not in OPENSSL_NAMES and name not in OPENSSL_NAMES.values():
            near = get_close_matches(name, [*OPENSSL_NAMES, *OPENSSL_NAMES.values()], 1)
            raise BadTls(
                f"{key}: {name[:64]!r} is not a known cipher suite" + (f"; do you mean {near[0]}?" if near else "")
            )
        found.append(OPENSSL_NAMES.get(name, name))
    return ":".join(found)
