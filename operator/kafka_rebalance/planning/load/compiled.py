"""How the loops of the search are compiled: by numba, with the machine code cached where a directory can be written.

In a read-only image without a writable cache directory (``NUMBA_CACHE_DIR``) each process compiles once.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """The function as machine code. Floating point is exact IEEE arithmetic, so results do not depend on the CPU."""
    try:
        made = numba.njit(cache=True)(function)
    except RuntimeError:  # numba found no directory for its cache
        made = numba.njit(function)
    return cast("_Function", made)
