"""fastai: a Learner on images and one on a table, with its schedule of one cycle."""

import tempfile

import numpy as np
import pandas as pd
import torch
from fastai.callback.schedule import fit_one_cycle  # noqa: F401  (a method of Learner)
from fastai.data.core import DataLoaders
from fastai.learner import Learner
from fastai.losses import CrossEntropyLossFlat
from fastai.metrics import accuracy
from fastai.optimizer import Adam, ranger
from fastai.tabular.all import (
    Categorify,
    FillMissing,
    Normalize,
    TabularDataLoaders,
    tabular_learner,
)
from fastai.torch_core import set_seed
from fastai.vision.models.xresnet import xresnet18
from torch.utils.data import TensorDataset

set_seed(1, reproducible=True)
images, labels = torch.randn(24, 3, 16, 16), torch.randint(0, 2, (24,))
sets = TensorDataset(images[:16], labels[:16]), TensorDataset(images[16:], labels[16:])
loaders = DataLoaders.from_dsets(*sets, bs=8, device="cpu", num_workers=0)
loaders.c = 2
with tempfile.TemporaryDirectory() as folder:
    learner = Learner(
        loaders, xresnet18(n_out=2), loss_func=CrossEntropyLossFlat(), opt_func=Adam,
        metrics=accuracy, path=folder,
    )  # fmt: skip
    with learner.no_bar(), learner.no_logging():
        learner.fit_one_cycle(2, 1e-2)
        print("images", [list(row) for row in learner.recorder.values])
        print("rates", [float(rate) for rate in learner.recorder.lrs])
        learner.save("kept")
        learner.load("kept")
        scores, truth = learner.get_preds()
        print("scores", scores.tolist(), truth.tolist())

    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "kind": random.choice(["a", "b", "c"], 64),
            "height": random.normal(size=64),
            "weight": random.normal(3, 2, size=64),
        }
    )
    table.loc[3, "weight"] = np.nan
    table["large"] = np.where(table["height"] > 0, "yes", "no")
    set_seed(2, reproducible=True)
    rows = TabularDataLoaders.from_df(
        table, folder, procs=[Categorify, FillMissing, Normalize], cat_names=["kind"],
        cont_names=["height", "weight"], y_names="large", valid_idx=list(range(48, 64)), bs=16,
        device="cpu",
    )  # fmt: skip
    learner = tabular_learner(rows, layers=[20, 10], metrics=accuracy, opt_func=ranger)
    with learner.no_bar(), learner.no_logging():
        learner.fit_one_cycle(2, 1e-2)
        print("table", [list(row) for row in learner.recorder.values])
        print("row", learner.predict(table.iloc[0])[2].tolist())
