"""How the kernels of this package are compiled, and two functions that Numba does not offer directly.

Kernels run without the GIL, without bounds checks (each checks its own reads; fuzz tests verify it) and
without Numba's reference counts (they allocate nothing, and counting arrays at every call made them 15 times slower).
They are cached beside the source, or in the user's cache, so only the first process of a machine waits for the
compiler. Where neither can be written, and where the disk is full or a crash has damaged a file, a process compiles for
itself, with one warning. The cache detects changes only in the kernel's own file. Helpers are therefore in their
kernels' file. After a change of *this* file, delete the package's `__pycache__`.
"""

from __future__ import annotations

import pickle
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from numba import njit, types
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

Kernel = TypeVar("Kernel", bound="Callable[..., Any]")

_njit: Any = njit  # its declared overloads have no _nrt and lose the decorated function's type
_raw_memcpy: Any = cgutils.raw_memcpy
_new_cache: Any = FunctionCache
_OPTIONS = {"nogil": True, "boundscheck": False, "_nrt": False}
_UNREADABLE = (OSError, EOFError, ValueError, AttributeError, ImportError, IndexError, pickle.PickleError)  # see pickle
_HINT = "each process compiles for itself, some seconds, once it has much to do; NUMBA_CACHE_DIR names another folder"


def kernel(function: Kernel) -> Kernel:
    """Compile at the first call, for the types of that call."""
    return _compiled(function)


def inlined(function: Kernel) -> Kernel:
    """Mark a helper of kernels that is small enough to be inlined at every call."""
    return _compiled(function, forceinline=True)


def kept_in() -> str:
    """The folder of the compiled code of this package; empty: none can be written."""
    try:
        return str(_new_cache(kernel).cache_path)
    except RuntimeError:
        return ""


class _Kept:
    """Numba's cache of one function, as its dispatcher uses it. What it cannot read or write is compiled anew."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            return self._cache.load_overload(signature, context)
        except _UNREADABLE as error:
            self._tell("read", error)
        try:
            self._cache.flush()  # so that the next process finds what this one compiles
        except OSError:
            pass  # `save_overload` tells it
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        try:
            self._cache.save_overload(signature, compiled)
        except _UNREADABLE as error:
            self._tell("written", error)

    def flush(self) -> None:
        self._cache.flush()

    @property
    def cache_path(self) -> str:
        return str(self._cache.cache_path)

    def _tell(self, what: str, error: Exception) -> None:
        _warn(f"compiled code in {self.cache_path} cannot be {what} ({type(error).__name__}: {error}): {_HINT}")


def _compiled(function: Kernel, **more: bool) -> Kernel:
    made = _njit(**_OPTIONS, **more)(function)
    try:
        made._cache = _Kept(_new_cache(function))
    except RuntimeError:  # as on a locked-down executor
        _warn(f"compiled code cannot be kept, neither in this package's folder nor in the user's cache: {_HINT}")
    return made  # type: ignore[no-any-return]


@cache
def _warn(text: str) -> None:
    """Each text once: a process has a dozen kernels."""
    warnings.warn(text, stacklevel=2)


def _copy_bytes(_context: Any, target: Any, target_start: Any, source: Any, source_start: Any, length: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target_type, _, source_type, _, _ = signature.args
        into, into_start, from_, from_start, count = arguments
        to_data = context.make_array(target_type)(context, builder, into).data
        from_data = context.make_array(source_type)(context, builder, from_).data
        _raw_memcpy(
            builder, builder.gep(to_data, [into_start]), builder.gep(from_data, [from_start]), count, 1, align=1
        )
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp, types.intp), generate


# copy_bytes(target, target_start, source, source_start, length): memcpy between byte arrays. A loop over the bytes of a
# hundred-byte value takes three times as long.
copy_bytes: Any = intrinsic(_copy_bytes)
