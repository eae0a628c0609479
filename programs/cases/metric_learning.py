"""pytorch-metric-learning: losses, miners and evaluation of embeddings."""

import torch
from pytorch_metric_learning import distances, losses, miners, reducers

torch.manual_seed(0)
x = torch.randn(12, 8, requires_grad=True)
y = torch.arange(12) % 4
for name, loss in {
    "triplet": losses.TripletMarginLoss(0.2),
    "ntxent": losses.NTXentLoss(),
    "ms": losses.MultiSimilarityLoss(),
    "contrastive": losses.ContrastiveLoss(
        distance=distances.CosineSimilarity(), pos_margin=1, neg_margin=0
    ),
    "circle": losses.CircleLoss(),
    "lifted": losses.LiftedStructureLoss(),
    "supcon": losses.SupConLoss(),
    "arc": losses.ArcFaceLoss(4, 8),
    "proxy": losses.ProxyAnchorLoss(4, 8),
    "softtriple": losses.SoftTripleLoss(4, 8),
}.items():
    torch.manual_seed(1)
    value = loss(x, y)
    (g,) = torch.autograd.grad(value, x)
    print(name, value.item(), g.norm().item())
pairs = miners.MultiSimilarityMiner()(x, y)
print("mined", [len(p) for p in pairs])
print(
    "hard",
    losses.TripletMarginLoss(reducer=reducers.AvgNonZeroReducer())(
        x, y, miners.TripletMarginMiner(type_of_triplets="semihard")(x, y)
    ).item(),
)
