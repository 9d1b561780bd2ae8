"""Free text without secrets: log lines and what errors say. It is the second fence; nodes write no secret into a log.

What looks like `password=...`, a key in PEM, a line for JAAS, a bearer token or a header of HTTP is blotted out.
"""

from __future__ import annotations

import re

BLOT = "[hidden]"
# Each expression looks at no sign more often than a bounded number of times: clients choose texts of many KB in lines.
_NAMED = re.compile(
    r"(?i)((?:password|passwd|passphrase|secret|token|credential|private.?key|sasl\.jaas\.config)[\w.\-]{0,60}+"
    r"\\*[\"']?\s*[=:]\s*)(?:(\\*+[\"'])(?:(?!(?<!\\)\2)[^\n])*+(?:\2)?|[^\s,;&}\]]+)"
)  # what is quoted goes on to the same quote, with as many backslashes before it: a line of JSON quotes quotes
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}")
_TOKEN = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*")  # a JSON web token
_IN_URL = re.compile(r"(?i)(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{0,30}+://[^\s/:@]{1,100}:)[^\s@]{1,200}@")


def redacted(text: str) -> str:
    """The text with secrets blotted out. It is not longer than before by more than a mark for each."""
    text = _PEM.sub(BLOT, text)
    text = _NAMED.sub(rf"\g<1>{BLOT}", text)
    text = _BEARER.sub(rf"\g<1> {BLOT}", text)
    text = _TOKEN.sub(BLOT, text)
    return _IN_URL.sub(rf"\g<1>{BLOT}@", text)
