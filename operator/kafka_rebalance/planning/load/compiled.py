"""How the loops of the search are compiled: by numba, each function once, with the types of its annotations.

Functions that call each other with other types of integers would be compiled for each combination. An array has one
dimension, or as many as its annotation says (``Annotated[Floats, 2]``).
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast, get_args, get_type_hints

import numba
from numba.core import config as typed_config

_Function = TypeVar("_Function", bound=Callable[..., Any])

config: Any = typed_config  # its values are set at run time
types: Any = numba.types
_SCALARS = {int: types.int64, float: types.float64, bool: types.boolean}
_CACHE = "kafka_rebalance.machine_code_cache.MachineCodeCache"


def compiled(function: _Function) -> _Function:
    """The function as machine code. Floating point is exact IEEE arithmetic, so results do not depend on the CPU.

    The code comes from the cache. Without a directory for it, each process compiles.
    """
    hints = get_type_hints(function, include_extras=True)
    signature = tuple(_numba_type(hint) for name, hint in hints.items() if name != "return")
    others, config.CACHE_LOCATOR_CLASSES = config.CACHE_LOCATOR_CLASSES, _CACHE
    try:
        made = numba.njit(signature, cache=True)(function)
    except (RuntimeError, OSError):  # no directory, or one that can only be read and has other code
        made = numba.njit(signature)(function)
    finally:
        config.CACHE_LOCATOR_CLASSES = others
    return cast("_Function", made)


def _numba_type(hint: Any) -> Any:
    if hint in _SCALARS:
        return _SCALARS[hint]
    if hasattr(hint, "_fields"):
        fields = get_type_hints(hint, include_extras=True)
        return types.NamedTuple([_numba_type(fields[name]) for name in hint._fields], hint)
    array, dimensions = (get_args(hint)[0], hint.__metadata__[0]) if hasattr(hint, "__metadata__") else (hint, 1)
    _, data_type = get_args(array)
    return types.Array(numba.from_dtype(get_args(data_type)[0]), dimensions, "C")
