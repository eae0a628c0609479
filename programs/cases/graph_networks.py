"""torch_geometric: convolutions over graphs, batches of graphs."""

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GINConv,
    SAGEConv,
    TransformerConv,
    global_mean_pool,
)
from torch_geometric.utils import add_self_loops, degree, to_undirected

torch.manual_seed(0)
ei = to_undirected(torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]]))
x = torch.randn(5, 8)
for c in (
    GCNConv(8, 4),
    GATConv(8, 4, heads=2),
    SAGEConv(8, 4),
    GINConv(torch.nn.Linear(8, 4)),
    TransformerConv(8, 4),
):
    y = c(x, ei)
    y.sum().backward()
    print(
        type(c).__name__,
        y.abs().mean().item(),
        sum(p.grad.abs().sum().item() for p in c.parameters() if p.grad is not None),
    )
ds = [
    Data(x=torch.randn(n, 8), edge_index=torch.randint(0, n, (2, 6)), y=torch.tensor([n % 2]))
    for n in (3, 4, 5, 6)
]
conv = GCNConv(8, 2)
for b in DataLoader(ds, batch_size=2, shuffle=True):
    o = global_mean_pool(conv(b.x, b.edge_index), b.batch)
    print(b.num_nodes, o.flatten().tolist())
print(degree(ei[0]).tolist(), add_self_loops(ei)[0].shape)
