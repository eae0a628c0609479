"""torch_frame (pytorch-frame): tables of columns of many kinds, encoders, models, loaders."""

import numpy as np
import pandas as pd
import torch
import torch_frame
from torch_frame.data import DataLoader, Dataset
from torch_frame.nn import (
    MLP,
    EmbeddingEncoder,
    ExcelFormer,
    FTTransformer,
    LinearBucketEncoder,
    LinearEncoder,
    LinearPeriodicEncoder,
    MultiCategoricalEmbeddingEncoder,
    ResNet,
    StypeWiseFeatureEncoder,
    TabNet,
    TabTransformer,
    TimestampEncoder,
    Trompt,
)
from torch_frame.transforms import CatToNumTransform

rng = np.random.default_rng(0)
rows = 48
table = pd.DataFrame({
    "size": rng.normal(size=rows),
    "weight": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows)),
    "colour": rng.choice(["red", "green", "blue"], rows),
    "shape": rng.choice(["round", "flat"], rows),
    "tags": [list(rng.choice(["a", "b", "c"], rng.integers(0, 3), replace=False))
             for _ in range(rows)],
    "when": pd.date_range("2020-01-01", periods=rows, freq="37h"),
    "kind": rng.integers(0, 2, rows),
})  # fmt: skip
kinds = {
    "size": torch_frame.numerical, "weight": torch_frame.numerical,
    "colour": torch_frame.categorical, "shape": torch_frame.categorical,
    "tags": torch_frame.multicategorical, "when": torch_frame.timestamp,
    "kind": torch_frame.categorical,
}  # fmt: skip
data = Dataset(table, col_to_stype=kinds, target_col="kind")
data.materialize()
frame = data.tensor_frame
print(frame.num_rows, {str(k): v for k, v in sorted(frame.col_names_dict.items(), key=str)})
print("statistics", sorted((str(k), str(v)) for k, v in data.col_stats["size"].items()))
encoder = StypeWiseFeatureEncoder(
    out_channels=8, col_stats=data.col_stats, col_names_dict=frame.col_names_dict,
    stype_encoder_dict={
        torch_frame.numerical: LinearEncoder(na_strategy=torch_frame.NAStrategy.MEAN),
        torch_frame.categorical: EmbeddingEncoder(),
        torch_frame.multicategorical: MultiCategoricalEmbeddingEncoder(),
        torch_frame.timestamp: TimestampEncoder(),
    },
)  # fmt: skip
torch.manual_seed(0)
for part in encoder.encoder_dict.values():
    part.reset_parameters()
features, names = encoder(frame)
print("encoded", tuple(features.shape), names, features.mean((0, 2)).tolist())
plain = Dataset(table.drop(columns=["tags", "when"]),
                col_to_stype={k: v for k, v in kinds.items() if k not in ("tags", "when")},
                target_col="kind").materialize()  # fmt: skip
for part in (LinearBucketEncoder(), LinearPeriodicEncoder(n_bins=4)):
    torch.manual_seed(1)
    chosen = {torch_frame.numerical: part, torch_frame.categorical: EmbeddingEncoder()}
    part.na_strategy = torch_frame.NAStrategy.MEAN
    whole = StypeWiseFeatureEncoder(8, plain.col_stats, plain.tensor_frame.col_names_dict, chosen)
    print(type(part).__name__, whole(plain.tensor_frame)[0].abs().mean().item())
shared = {"out_channels": 2, "col_stats": plain.col_stats,
          "col_names_dict": plain.tensor_frame.col_names_dict}  # fmt: skip
for kind, options in {
    MLP: {"channels": 8, "num_layers": 2, "dropout_prob": 0.0},
    ResNet: {"channels": 8, "num_layers": 2, "dropout_prob": 0.0},
    FTTransformer: {"channels": 8, "num_layers": 2},
    TabNet: {"num_layers": 2, "split_feat_channels": 4, "split_attn_channels": 4, "gamma": 1.2},
    Trompt: {"channels": 8, "num_prompts": 4, "num_layers": 2},
    TabTransformer: {"channels": 8, "num_layers": 1, "num_heads": 2, "encoder_pad_size": 2,
                     "attn_dropout": 0.0, "ffn_dropout": 0.0},
}.items():  # fmt: skip
    torch.manual_seed(2)
    model = kind(**shared, **options)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    torch.manual_seed(3)
    losses = []
    for _ in range(2):
        for batch in DataLoader(plain.tensor_frame, batch_size=16, shuffle=True):
            torch.manual_seed(len(losses))
            out = model(batch)
            out = out.mean(1) if out.dim() == 3 else out
            loss = torch.nn.functional.cross_entropy(out, batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    print(kind.__name__, losses)
numbers = CatToNumTransform()
numbers.fit(plain.tensor_frame, plain.col_stats)
changed = numbers(plain.tensor_frame)
print("numbers", {str(k): tuple(v.shape) for k, v in changed.feat_dict.items()})
torch.manual_seed(4)
model = ExcelFormer(in_channels=8, num_cols=4, num_layers=1, num_heads=2, out_channels=2,
                    col_stats=numbers.transformed_stats, mixup="hidden",
                    col_names_dict=changed.col_names_dict)  # fmt: skip
mixed, target = model(changed, mixup_encoded=True)
print("excel", mixed.sum().item(), tuple(target.shape))
again = torch_frame.cat([frame[:10], frame[10:]], dim=0)
print("joined", again.num_rows, again[torch.tensor([3, 1])].y.tolist())
