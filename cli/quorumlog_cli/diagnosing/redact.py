"""Free text without secrets: log lines and what errors say. It is the second fence; nodes write no secret into a log.

What looks like `password=...`, a key in PEM, a line for JAAS, a bearer token or a header of HTTP is blotted out.
"""

from __future__ import annotations

import re

BLOT = "[hidden]"
_NAMED = re.compile(
    r"(?i)([\w.\-]*(?:password|passwd|passphrase|secret|token|credential|private.?key|sasl\.jaas\.config)[\w.\-]*"
    r"[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;&}\]]+)"
)
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}")
_TOKEN = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*")  # a JSON web token
_IN_URL = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://[^\s/:@]+:)[^\s/@]+@")


def redacted(text: str) -> str:
    """The text with secrets blotted out. It is not longer than before by more than a mark for each."""
    text = _PEM.sub(BLOT, text)
    text = _NAMED.sub(rf"\g<1>{BLOT}", text)
    text = _BEARER.sub(rf"\g<1> {BLOT}", text)
    text = _TOKEN.sub(BLOT, text)
    return _IN_URL.sub(rf"\g<1>{BLOT}@", text)
