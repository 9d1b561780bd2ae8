"""What is installed only on request: the error that names the extra, in place of the import that failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from quorumlog.client.errors import ConfigError


@contextmanager
def importing_arrow(what: str) -> Iterator[None]:
    """what: the call that needs it. Raises ConfigError where an import inside fails."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"{what} needs pyarrow and numpy ({error}): pip install 'quorumlog[arrow]'") from error
