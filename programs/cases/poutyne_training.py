"""poutyne: training by fit, metrics, callbacks, checkpoints, experiments."""

import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from poutyne import (
    F1,
    Accuracy,
    Callback,
    EarlyStopping,
    ExponentialLR,
    LambdaCallback,
    Model,
    ModelBundle,
    ModelCheckpoint,
    ReduceLROnPlateau,
    SKLearnMetrics,
    TensorDataset,
    TopKAccuracy,
    set_seeds,
)
from sklearn.metrics import balanced_accuracy_score
from torch import nn
from torch.utils.data import DataLoader

set_seeds(3)
x = torch.randn(90, 6)
y = (x[:, 0] + x[:, 1].square() > 0.8).long() + (x[:, 2] > 1).long()


def told(logs):
    return {name: value for name, value in sorted(logs.items()) if "time" not in name}


class Written(Callback):
    def on_epoch_end(self, epoch_number, logs):
        print("   epoch", epoch_number, told(logs))


def network():
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))


def balanced(y_true, y_pred, sample_weight=None):
    return balanced_accuracy_score(y_true, y_pred.argmax(-1))


set_seeds(4)
model = Model(network(), "adam", "cross_entropy", batch_metrics=["accuracy", TopKAccuracy(2)],
              epoch_metrics=["f1", F1(average="macro"), SKLearnMetrics(balanced)])  # fmt: skip
history = model.fit(x[:60], y[:60], validation_data=(x[60:], y[60:]), epochs=3, batch_size=16,
                    verbose=False, callbacks=[Written(), ExponentialLR(gamma=0.9)])  # fmt: skip
print("epochs", len(history), sorted(history[0])[:4], model.optimizer.param_groups[0]["lr"])
loss, metrics = model.evaluate(x[60:], y[60:], verbose=False)
print("evaluated", loss, np.asarray(metrics).tolist())
print("predicted", model.predict(x[:4], verbose=False).tolist())
print("one batch", model.train_on_batch(x[:8], y[:8])[0], model.evaluate_on_batch(x[:8], y[:8])[0])
print("weights", {name: value.sum().item() for name, value in model.get_weights().items()})
with tempfile.TemporaryDirectory() as folder:
    best = str(Path(folder) / "best.pt")
    set_seeds(5)
    second = Model(network(), "sgd", nn.CrossEntropyLoss(), batch_metrics=[Accuracy()])
    train = DataLoader(TensorDataset(x[:60], y[:60]), 20, shuffle=True)
    valid = DataLoader(TensorDataset(x[60:], y[60:]), 20)
    second.fit_generator(
        train, valid, epochs=6, verbose=False,
        callbacks=[ModelCheckpoint(best, monitor="val_loss", save_best_only=True),
                   ReduceLROnPlateau(patience=1, factor=0.5), EarlyStopping(patience=3),
                   LambdaCallback(on_train_end=lambda logs: print("   end"))],
    )  # fmt: skip
    print("saved", sorted(torch.load(best)), second.evaluate_generator(valid, verbose=False)[0])
    second.load_weights(best)
    print("loaded", second.evaluate_generator(valid, verbose=False)[0])
    set_seeds(6)
    os.chdir(folder)  # paths are printed
    run = Path("run")
    bundle = ModelBundle.from_network(str(run), network(), optimizer="adam", task="classif")
    bundle.train_data(x[:60], y[:60], validation_data=(x[60:], y[60:]), epochs=2, verbose=False)
    print("files", sorted(path.name for path in run.iterdir()))
    print("tested", told(bundle.test_data(x[60:], y[60:], verbose=False)))
