"""pytorch-forecasting: the temporal fusion transformer and N-BEATS on drawn series."""

import lightning.pytorch as pl
import numpy as np
import pandas as pd
import torch
from pytorch_forecasting import (
    NBeats,
    TemporalFusionTransformer,
    TimeSeriesDataSet,
)
from pytorch_forecasting.data import GroupNormalizer
from pytorch_forecasting.metrics import QuantileLoss

pl.seed_everything(0)
# In single precision, what these models learn depends on the order of sums: PyTorch's own numbers
# differ by 1e-3 between its kernels for AVX2 and those without.
QUIET = {
    "accelerator": "cpu", "logger": False, "enable_progress_bar": False, "precision": "64-true",
}  # fmt: skip
random = np.random.default_rng(0)
rows = []
for series in "ab":
    values = np.sin(np.arange(28) / 4) + random.normal(scale=0.1, size=28) + 3
    rows += [
        {"time": t, "series": series, "value": v, "day": str(t % 7)} for t, v in enumerate(values)
    ]
table = pd.DataFrame(rows)
table["value"] = table["value"].astype(np.float32)
training = TimeSeriesDataSet(
    table[table["time"] < 24], time_idx="time", target="value", group_ids=["series"],
    min_encoder_length=6, max_encoder_length=8, max_prediction_length=4,
    static_categoricals=["series"], time_varying_known_categoricals=["day"],
    time_varying_known_reals=["time"], time_varying_unknown_reals=["value"],
    target_normalizer=GroupNormalizer(groups=["series"]), add_relative_time_idx=True,
    add_target_scales=True, add_encoder_length=True,
)  # fmt: skip
loader = training.to_dataloader(train=True, batch_size=8, num_workers=0)
validation = TimeSeriesDataSet.from_dataset(training, table, predict=True, stop_randomization=True)
later = validation.to_dataloader(train=False, batch_size=8, num_workers=0)


def trained(model, batches):
    trainer = pl.Trainer(
        max_epochs=1, enable_checkpointing=False, enable_model_summary=False,
        limit_train_batches=2, gradient_clip_val=0.1, **QUIET,
    )  # fmt: skip
    trainer.fit(model, batches)
    return float(trainer.callback_metrics["train_loss_epoch"])


torch.manual_seed(1)
transformer = TemporalFusionTransformer.from_dataset(
    training, learning_rate=0.03, hidden_size=8, attention_head_size=2, hidden_continuous_size=4,
    dropout=0.1, output_size=3, loss=QuantileLoss([0.1, 0.5, 0.9]), log_interval=-1,
)  # fmt: skip
print("transformer", sum(p.numel() for p in transformer.parameters()), trained(transformer, loader))
found = transformer.predict(
    later,
    mode="raw",
    return_x=True,
    trainer_kwargs=dict(QUIET),  # it adds callbacks to its own
)
print("quantiles", found.output.prediction.mean((0, 1)).tolist())
importance = transformer.interpret_output(found.output, reduction="sum")
print("weights", importance["encoder_variables"].tolist())
plain = TimeSeriesDataSet(
    table[table["time"] < 24], time_idx="time", target="value", group_ids=["series"],
    max_encoder_length=8, max_prediction_length=4, time_varying_unknown_reals=["value"],
)  # fmt: skip
torch.manual_seed(2)
beats = NBeats.from_dataset(plain, widths=[16, 16], backcast_loss_ratio=0.1, num_blocks=[1, 1],
                            num_block_layers=[2, 2], log_interval=-1)  # fmt: skip
print("nbeats", trained(beats, plain.to_dataloader(train=True, batch_size=8, num_workers=0)))
