"""`torch.utils.tensorboard`: logs that TensorBoard shows.

`writer.py`: SummaryWriter and the files it writes to; `summary.py`: one function for each kind of
entry; `histograms.py`, `pictures.py`, `embeddings.py`, `hparams.py`: what these are made of. The
messages are those of the package `tensorboard`, which has to be installed.
"""

from __future__ import annotations

from tensorboard.summary.writer.record_writer import RecordWriter

from flambeau.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
