"""chemprop: message passing over molecules, trained, saved and used.

Trained in double precision: with attentive aggregation some gradients are zero but for rounding,
and Adam scales them up.
"""

import logging
import tempfile

import numpy as np
import torch
from chemprop import data, featurizers, models, nn
from lightning import pytorch as pl

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
words = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CCCCC1", "CCCl", "O=C=O", "CC#N"]
values = np.arange(8, dtype=float)[:, None] / 4
points = [data.MoleculeDatapoint.from_smi(w, y) for w, y in zip(words, values, strict=True)]
molecules = data.MoleculeDataset(points, featurizers.SimpleMoleculeMolGraphFeaturizer())
scaler = molecules.normalize_targets()
loader = data.build_dataloader(molecules, batch_size=4, shuffle=False, num_workers=0)
collate = loader.collate_fn


def in_double(points: list) -> data.TrainingBatch:
    batch = collate(points)
    batch.bmg.V, batch.bmg.E = batch.bmg.V.double(), batch.bmg.E.double()
    return batch


loader.collate_fn = in_double
torch.manual_seed(0)  # the aggregations are made first
for kind in (nn.BondMessagePassing, nn.AtomMessagePassing):
    for gather in (nn.NormAggregation(), nn.AttentiveAggregation(output_size=16)):
        torch.manual_seed(0)
        back = nn.UnscaleTransform.from_standard_scaler(scaler)
        head = nn.RegressionFFN(input_dim=16, hidden_dim=8, output_transform=back)
        net = models.MPNN(kind(d_h=16, depth=2), gather, head, batch_norm=True)
        trainer = pl.Trainer(
            max_epochs=2, precision="64-true", accelerator="cpu", logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        trainer.fit(net, loader)
        print(kind.__name__, type(gather).__name__, trainer.callback_metrics["train_loss"].item())
        print("  ", torch.cat(trainer.predict(net, loader)).ravel().tolist())
net, loader.collate_fn = net.float(), collate
with tempfile.TemporaryDirectory() as folder:
    models.save_model(f"{folder}/net.pt", net)
    again = models.load_model(f"{folder}/net.pt")
batch = next(iter(loader))
with torch.no_grad():
    print("kept", torch.equal(again.eval()(batch.bmg), net.eval()(batch.bmg)))
    print("fingerprint", net.fingerprint(batch.bmg).sum(1).tolist())
for head in (nn.BinaryClassificationFFN, nn.MulticlassClassificationFFN, nn.EvidentialFFN):
    torch.manual_seed(1)
    options = {"n_classes": 3} if head is nn.MulticlassClassificationFFN else {}
    net = models.MPNN(
        nn.BondMessagePassing(d_h=8), nn.SumAggregation(), head(input_dim=8, **options)
    )
    print(head.__name__, net.eval()(batch.bmg).flatten()[:4].tolist())
