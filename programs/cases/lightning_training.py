"""A Lightning Trainer: two epochs of a small network, and its test."""

import logging
import warnings

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
for name in ("lightning", "lightning.pytorch", "lightning.fabric"):
    logging.getLogger(name).setLevel(logging.ERROR)


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)
        )

    def training_step(self, batch, index):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.layers(x), y)

    def on_train_epoch_end(self):
        print("weights", sum(p.sum().item() for p in self.parameters()))

    def test_step(self, batch, index):
        x, y = batch
        print("test", torch.nn.functional.cross_entropy(self.layers(x), y).item())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


L.seed_everything(3)
data = TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
trainer = L.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)  # fmt: skip
net = Net()
trainer.fit(net, DataLoader(data, batch_size=16, shuffle=True))
trainer.test(net, DataLoader(data, batch_size=64), verbose=False)
