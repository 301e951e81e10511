"""The types of the search's arrays. `compiled` reads their number of dimensions."""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]

FloatTable = Annotated[Floats, 2]
IntTable = Annotated[Ints, 2]
IndexTable = Annotated[Indices, 2]
