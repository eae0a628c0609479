"""A table of confusions, precision and recall, and a ranking."""

import torch

torch.manual_seed(0)
scores, targets = torch.randn(300, 4), torch.randint(0, 4, (300,))
predicted = scores.argmax(1)
table = torch.zeros(4, 4, dtype=torch.long)
table.index_put_((targets, predicted), torch.ones(300, dtype=torch.long), accumulate=True)
hits = table.diagonal()
for name, total in (("recall", table.sum(1)), ("precision", table.sum(0))):
    print(name, [f"{value:.2f}" for value in (hits / total.clamp(min=1)).tolist()])
order = scores[:, 0].argsort(descending=True)
found = (targets[order] == 0).float().cumsum(0)
average = (found / torch.arange(1, 301))[targets[order] == 0].mean()
assert 0 < average.item() < 1
for k in range(4):
    print(f"class {k}: {table[k].sum().item()} samples")
