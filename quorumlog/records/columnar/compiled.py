"""How the kernels of this package are compiled, and two functions that Numba does not offer directly.

Kernels run without the GIL, without bounds checks (each checks its own reads; fuzz tests verify it) and
without Numba's reference counts (they allocate nothing, and counting arrays at every call made them 15 times slower).
They are cached beside the source, so only the first process of a machine waits for the compiler. The cache detects
changes only in the kernel's own file. Helpers are therefore in their kernels' file. After a change of *this* file,
delete the package's `__pycache__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

Kernel = TypeVar("Kernel", bound="Callable[..., Any]")

_njit: Any = njit  # its declared overloads have no _nrt and lose the decorated function's type
_raw_memcpy: Any = cgutils.raw_memcpy
_OPTIONS = {"nogil": True, "boundscheck": False, "_nrt": False}


def kernel(function: Kernel) -> Kernel:
    """Compile at the first call, for the types of that call."""
    return _compiled(function)


def inlined(function: Kernel) -> Kernel:
    """Mark a helper of kernels that is small enough to be inlined at every call."""
    return _compiled(function, forceinline=True)


def _compiled(function: Kernel, **more: bool) -> Kernel:
    try:
        return _njit(cache=True, **_OPTIONS, **more)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # neither the source's folder nor the user's cache is writable, as on a locked-down executor
        return _njit(**_OPTIONS, **more)(function)  # type: ignore[no-any-return]


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
