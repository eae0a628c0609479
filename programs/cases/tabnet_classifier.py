"""pytorch-tabnet: attentive classification and regression of tables, pretraining, masks."""

import contextlib
import tempfile

import numpy as np
import torch
from pytorch_tabnet.pretraining import TabNetPretrainer
from pytorch_tabnet.tab_model import TabNetClassifier, TabNetRegressor

random = np.random.default_rng(0)
x = random.normal(size=(96, 6)).astype(np.float32)
x[:, 5] = random.integers(0, 3, 96)
y = (x[:, 0] + x[:, 1] > 0).astype(np.int64)
sizes = {"n_d": 4, "n_a": 4, "n_steps": 2, "seed": 0, "verbose": 0, "device_name": "cpu"}
fit = {"max_epochs": 3, "batch_size": 32, "virtual_batch_size": 16, "num_workers": 0}

classifier = TabNetClassifier(cat_idxs=[5], cat_dims=[3], cat_emb_dim=2, **sizes)
classifier.fit(x[:64], y[:64], eval_set=[(x[64:], y[64:])], eval_metric=["auc", "logloss"], **fit)
print("losses", classifier.history["loss"], classifier.history["val_0_logloss"])
print("scores", classifier.predict_proba(x[64:70]).tolist())
print("importance", classifier.feature_importances_.tolist())
explained, masks = classifier.explain(x[64:68])
print("explained", explained.sum().item(), sorted(masks), masks[0].sum(1).tolist())
with tempfile.TemporaryDirectory() as folder:
    with contextlib.redirect_stdout(None):  # it tells where
        file = classifier.save_model(f"{folder}/kept")
    again = TabNetClassifier()
    again.load_model(file)
print("kept", (again.predict(x[64:]) == classifier.predict(x[64:])).all())

# These in double precision (the library makes all inputs single): in single, predictions near zero
# are the difference of larger numbers.
torch.set_default_dtype(torch.float64)
torch.Tensor.float = torch.Tensor.double
first = TabNetPretrainer(mask_type="entmax", **sizes)
first.fit(x[:64, :5], eval_set=[x[64:, :5]], pretraining_ratio=0.5, **fit)
print("pretrained", first.history["loss"])
regressor = TabNetRegressor(mask_type="entmax", **sizes)
regressor.fit(
    x[:64, :5], x[:64, :1] * 2, eval_set=[(x[64:, :5], x[64:, :1] * 2)], from_unsupervised=first,
    **fit,
)  # fmt: skip
print("regression", regressor.history["loss"], regressor.predict(x[64:67, :5]).tolist())
