"""deepctr-torch: click models on drawn tables."""

import contextlib
import io
import threading

import numpy as np
import torch

start = threading.Thread.start
threading.Thread.start = lambda thread: None  # at import it asks the package index for news
from deepctr_torch.inputs import DenseFeat, SparseFeat, VarLenSparseFeat, get_feature_names  # noqa: E402
from deepctr_torch.models import DCN, NFM, PNN, WDL, AutoInt, DeepFM, FiBiNET, xDeepFM  # noqa: E402

threading.Thread.start = start
draw = np.random.default_rng(0)
count = 64
columns = [SparseFeat(name, 5, embedding_dim=4) for name in ("user", "place", "hour")]
columns += [DenseFeat("price", 1), DenseFeat("age", 1)]
columns.append(VarLenSparseFeat(SparseFeat("words", 7, embedding_dim=4), maxlen=3, combiner="mean"))
table = {name: draw.integers(0, 5, count) for name in ("user", "place", "hour")}
table |= {name: draw.normal(size=count).astype(np.float32) for name in ("price", "age")}
table["words"] = draw.integers(0, 7, (count, 3))
clicked = ((table["user"] > 2) | (table["price"] > 1)).astype(np.float32)
print(get_feature_names(columns))
short = [column for column in columns if not isinstance(column, VarLenSparseFeat)]
for kind in (DeepFM, WDL, DCN, xDeepFM, NFM, AutoInt, PNN, FiBiNET):
    chosen = short if kind in (PNN, FiBiNET) else columns
    options = {"dnn_hidden_units": (8, 4)}
    first = (chosen,) if kind is PNN else (chosen, chosen)
    model = kind(*first, task="binary", seed=3, device="cpu", **options)
    model.compile(torch.optim.SGD(model.parameters(), 0.05), "binary_crossentropy", ["auc"])
    inputs = {name: table[name] for name in get_feature_names(chosen)}
    with contextlib.redirect_stdout(io.StringIO()):  # it tells how long an epoch takes
        told = model.fit(inputs, clicked, batch_size=32, epochs=2, verbose=0, shuffle=False)
    print(kind.__name__, told.history)
    print("  ", model.predict(inputs, 32)[:4].ravel().tolist())
