"""What is wrong with settings of TLS, or with the files that they name."""

from __future__ import annotations


class BadTls(ValueError):
    """TLS cannot begin, or not with these files. The message is one sentence that names the key and the cure, and has
    no secret in it."""
