"""What is wrong with settings of TLS, or with the files that they name."""

from __future__ import annotations


class BadTls(ValueError):
    """TLS cannot begin, or not with these files. The message is one sentence that names the key and the cure, and has
    no secret in it."""


class BadRequest(ValueError):
    """What an operator asked for cannot be done as it was said. The message says how to say it."""


class AlreadyThere(Exception):
    """A file that would be replaced. The message names it and what replaces it."""


class NotThere(Exception):
    """A folder or a certificate that was named and is not there."""
