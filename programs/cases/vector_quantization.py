"""vector-quantize-pytorch: codebooks."""

import torch
from vector_quantize_pytorch import (
    FSQ,
    LFQ,
    RandomProjectionQuantizer,
    ResidualVQ,
    SimVQ,
    VectorQuantize,
)

torch.manual_seed(0)
x = torch.randn(2, 16, 8)
for name, make in {
    "vq": lambda: VectorQuantize(dim=8, codebook_size=16, decay=0.8, commitment_weight=1.0),
    "kmeans": lambda: VectorQuantize(dim=8, codebook_size=8, kmeans_init=True, kmeans_iters=4),
    "cosine": lambda: VectorQuantize(dim=8, codebook_size=8, use_cosine_sim=True),
    "residual": lambda: ResidualVQ(dim=8, num_quantizers=3, codebook_size=8),
    "simvq": lambda: SimVQ(dim=8, codebook_size=16),
}.items():
    torch.manual_seed(1)
    q, ids, loss = make()(x)
    print(name, q.sum().item(), ids.flatten()[:8].tolist(), loss.sum().item())
q, ids = FSQ([4, 4, 3])(torch.randn(2, 5, 3))
print("fsq", q.sum().item(), ids.tolist())
q, ids, aux = LFQ(codebook_size=16, dim=8, entropy_loss_weight=0.1)(x)
print("lfq", q.sum().item(), aux.item(), ids.flatten()[:5].tolist())
torch.manual_seed(2)
print(
    RandomProjectionQuantizer(dim=8, num_codebooks=2, codebook_dim=4, codebook_size=16)(x)[
        0, :3
    ].tolist()
)
