"""pytorch-widedeep: tables with words and numbers, several models, a trainer."""

import numpy as np
import pandas as pd
import torch
from pytorch_widedeep import Trainer
from pytorch_widedeep.models import (
    SAINT,
    FTTransformer,
    TabMlp,
    TabNet,
    TabResnet,
    TabTransformer,
    Wide,
    WideDeep,
)
from pytorch_widedeep.preprocessing import TabPreprocessor, WidePreprocessor

rng = np.random.default_rng(0)
table = pd.DataFrame(
    {
        "town": rng.choice(["a", "b", "c"], 96),
        "trade": rng.choice(["x", "y"], 96),
        "age": rng.normal(40, 9, 96),
        "hours": rng.normal(30, 5, 96),
    }
)
target = ((table["age"] > 40) & (table["town"] != "b")).to_numpy().astype(int)
wide_words = WidePreprocessor(wide_cols=["town", "trade"], crossed_cols=[("town", "trade")])
words = TabPreprocessor(cat_embed_cols=["town", "trade"], continuous_cols=["age", "hours"])
attention = TabPreprocessor(
    cat_embed_cols=["town", "trade"], continuous_cols=["age", "hours"], with_attention=True
)
x_wide = wide_words.fit_transform(table)
x_tab, x_attention = words.fit_transform(table), attention.fit_transform(table)
common = {
    "column_idx": words.column_idx,
    "cat_embed_input": words.cat_embed_input,
    "continuous_cols": ["age", "hours"],
}
attending = {
    "column_idx": attention.column_idx,
    "cat_embed_input": attention.cat_embed_input,
    "continuous_cols": ["age", "hours"],
    "input_dim": 8,
    "n_heads": 2,
    "n_blocks": 1,
}
kinds = {
    "mlp": (TabMlp, {**common, "mlp_hidden_dims": [16, 8]}, x_tab),
    "resnet": (TabResnet, {**common, "blocks_dims": [16, 8]}, x_tab),
    "tabnet": (TabNet, {**common, "n_steps": 2, "step_dim": 8, "attn_dim": 8}, x_tab),
    "transformer": (TabTransformer, attending, x_attention),
    "saint": (SAINT, attending, x_attention),
    "ft": (FTTransformer, {**attending, "kv_compression_factor": 1.0}, x_attention),
}
single = torch.Tensor.float
for name, (kind, options, x) in kinds.items():
    torch.manual_seed(0)
    if name == "resnet":  # batch norms of batches: its fourth digit hangs on rounding
        torch.set_default_dtype(torch.float64)
        torch.Tensor.float = torch.Tensor.double
    model = WideDeep(
        wide=Wide(input_dim=int(x_wide.max()), pred_dim=1), deeptabular=kind(**options)
    )
    trainer = Trainer(
        model,
        objective="binary",
        optimizers=torch.optim.Adam(model.parameters(), 0.01),
        verbose=0,
        seed=1,
        num_workers=0,
    )
    trainer.fit(X_wide=x_wide, X_tab=x, target=target, n_epochs=1, batch_size=32)
    print(name, [float(value) for value in trainer.history["train_loss"]])
    print(name, trainer.predict_proba(X_wide=x_wide, X_tab=x)[:4, 1].tolist())
    torch.Tensor.float = single
    torch.set_default_dtype(torch.float32)
