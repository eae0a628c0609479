"""torch-pruning: dependency graphs, structural pruning of networks, and training after it."""

import torch
import torch_pruning as tp
from torch import nn
from torchvision.models import mobilenet_v2, resnet18

torch.manual_seed(6)
for name, make in (("resnet18", resnet18), ("mobilenet_v2", mobilenet_v2)):
    model = make(num_classes=5)
    images = torch.randn(1, 3, 64, 64)
    macs, size = tp.utils.count_ops_and_params(model, images)
    print(name, macs, size)
    graph = tp.DependencyGraph().build_dependency(model, example_inputs=images)
    first = next(m for m in model.modules() if isinstance(m, nn.Conv2d))
    group = graph.get_pruning_group(first, tp.prune_conv_out_channels, idxs=[2, 6, 9])
    print(name, len(group), graph.check_pruning_group(group))
    pruner = tp.pruner.MagnitudePruner(
        model, images, importance=tp.importance.MagnitudeImportance(p=2), pruning_ratio=0.5,
        ignored_layers=[m for m in model.modules() if isinstance(m, nn.Linear)],
    )  # fmt: skip
    pruner.step()
    print(name, tp.utils.count_ops_and_params(model, images))
    print(name, [tuple(p.shape) for p in model.parameters()][:9])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model.eval()
    for step in range(2):
        loss = nn.functional.cross_entropy(model(images), torch.tensor([3]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(name, step, loss.item())
