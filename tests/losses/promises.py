"""Marks a loss: a test that asserts the right behaviour and is expected to fail by that assertion alone.

    @expected_loss("why it happens")
    def test_...() -> None:
        ...                    # whatever goes wrong here is an error of the test
        with promised():
            assert ...         # what is promised and not kept yet

The mark goes away with the loss: `strict` turns a test that passes into a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class PromiseBroken(AssertionError):
    """The assertion that states a promise has failed; no other assertion raises this."""


def expected_loss(reason: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(strict=True, raises=PromiseBroken, reason=reason)


@contextmanager
def promised() -> Iterator[None]:
    """Holds assertions and nothing else."""
    try:
        yield
    except AssertionError as error:
        raise PromiseBroken(str(error)) from error
