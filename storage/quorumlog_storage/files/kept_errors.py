"""Errors that outlive the call that met them, without the frames of that call.

A traceback holds the frames that an error has passed through, a frame its variables, and those the open files. A file
that is still open keeps its file system from being unmounted. So:

1. Who keeps an error (a log, an index, a directory) keeps `kept(error)`, because the error itself is often still on
   its way and gets a frame at each step.
2. Who hands an error on as a value, from a thread of the disk to the loop, lets go of its frames first
   (`release_frames`). A frame also holds its caller's, and a caller that puts errors into a list is in a circle with
   them; only the collector ends that, and a node collects seldom.
"""

from __future__ import annotations

import traceback
from typing import TypeVar

E = TypeVar("E", bound=BaseException)


def kept(error: E) -> E:
    """The same error as a new object without tracebacks, and so are those that led to it."""
    return _twin(error, [])


def release_frames(error: BaseException) -> None:
    """Empty the frames that have ended, of an error that was caught. The traceback still says where they were."""
    chain: list[BaseException] = [error]
    for one in chain:  # it grows meanwhile
        traceback.clear_frames(one.__traceback__)
        for cause in (one.__cause__, one.__context__):
            if cause is not None and not any(cause is known for known in chain):
                chain.append(cause)


def _twin(error: E, twins: list[tuple[BaseException, BaseException]]) -> E:
    """twins: those made so far, behind the originals, since errors may lead to each other in a circle."""
    twin = next((made for original, made in twins if original is error), None)
    if twin is None:
        twin = _bare(error)
        twins.append((error, twin))
        for name, value in vars(error).items():
            vars(twin)[name] = _twin(value, twins) if isinstance(value, BaseException) else value
        if error.__cause__ is not None:
            twin.__cause__ = _twin(error.__cause__, twins)
        if error.__context__ is not None:
            twin.__context__ = _twin(error.__context__, twins)
        twin.__suppress_context__ = error.__suppress_context__
    assert isinstance(twin, type(error))
    return twin


def _bare(error: E) -> E:
    """Types of the language are made by their constructor. Ours take other things than their text."""
    kind = type(error)
    if kind.__module__ != "builtins":
        return kind.__new__(kind, *error.args)
    reduced = error.__reduce__()
    assert isinstance(reduced, tuple), f"{kind.__name__} is told by its name"
    bare: E = kind(*reduced[1])
    return bare
