"""Datasets, samplers and loaders: from samples to batches.

    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    for x_batch, y_batch in loader: ...

The same seed gives the same batches in the same order as PyTorch.
"""

from __future__ import annotations

from flambeau._core.missing import lazily
from flambeau.utils.data.collate import default_collate, default_convert
from flambeau.utils.data.dataloader import DataLoader
from flambeau.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from flambeau.utils.data.distributed import DistributedSampler
from flambeau.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from flambeau.utils.data.worker_info import get_worker_info

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]


LAZY = {
    "ImageFolder": "image_folder",
    "TFRecordDataset": "archives.records",
    "TarDataset": "archives.tar",
    **dict.fromkeys(
        ("IterDataPipe", "MapDataPipe", "DFIterDataPipe", "DataChunk"), "datapipes.datapipe"
    ),
    **dict.fromkeys(
        ("functional_datapipe", "guaranteed_datapipes_determinism", "non_deterministic"),
        "datapipes._decorator",
    ),
}
"""Names that are imported when they are used, and where from."""
PACKAGES = ("_utils", "archives", "datapipes", "graph", "graph_settings", "transforms")


__getattr__ = lazily(__name__, LAZY, PACKAGES)
