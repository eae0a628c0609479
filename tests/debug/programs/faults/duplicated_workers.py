"""A stream that every worker of the loader reads from its beginning."""

import warnings

import torch
from torch.utils.data import DataLoader, IterableDataset


class Lines(IterableDataset):
    def __iter__(self):
        for number in range(40):
            yield torch.tensor([number, number + 1])


warnings.simplefilter("ignore")
seen = 0
loader = DataLoader(Lines(), batch_size=4, num_workers=2)
for batch in loader:  # advice: an IterableDataset in every worker
    seen += len(batch)
assert seen == 80
