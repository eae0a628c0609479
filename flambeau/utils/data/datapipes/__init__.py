"""`torch.utils.data.datapipes`: datasets made of steps, each of which reads the one before.

`datapipe.py` has the two base classes, `iter/` and `map/` the steps of either kind, under
PyTorch's names for their files.
"""

from flambeau.utils.data.datapipes import iter as iter  # noqa: A004
from flambeau.utils.data.datapipes import map as map  # noqa: A004
