"""A frozen trunk with a new head; checkpoints that fit only partly."""

import copy

import torch
from torch import nn, optim

torch.manual_seed(2)


def stage(channels, features):
    return [
        nn.Conv2d(channels, features, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(features),
        nn.ReLU(inplace=True),
    ]


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(*stage(3, 8), *stage(8, 16))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(16, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.features(x)), 1))


torch.save(Classifier(1000).state_dict(), "pretrained.pth")
model = Classifier(1000)
print(model.load_state_dict(torch.load("pretrained.pth", weights_only=True)))
for parameter in model.parameters():
    parameter.requires_grad = False
model.fc = nn.Linear(model.fc.in_features, 2)
print([name for name, p in model.named_parameters() if p.requires_grad])

optimizer = optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), 0.1, momentum=0.9)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.1)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1, weight=torch.tensor([1.0, 2.0]))
x = torch.randn(16, 3, 16, 16)
y = (x.mean((1, 2, 3)) > 0).long()
best, best_state = 0.0, None
for epoch in range(5):
    for phase in ("train", "val"):
        model.train(phase == "train")
        optimizer.zero_grad()
        with torch.set_grad_enabled(phase == "train"):
            scores = model(x)
            loss = criterion(scores, y)
        if phase == "train":
            loss.backward()
            optimizer.step()
        _, predicted = torch.max(scores, 1)
        accuracy = (predicted == y).double().mean()
        print(f"{epoch} {phase} loss {loss.item():.6f} accuracy {accuracy:.4f}")
        if phase == "val" and accuracy > best:
            best, best_state = accuracy, copy.deepcopy(model.state_dict())
    scheduler.step()
print(model.load_state_dict(best_state), best, optimizer)

saved = torch.load("pretrained.pth")
try:
    model.load_state_dict(saved)
except RuntimeError as error:
    print(error)
mine = model.state_dict()
fitting = {key: value for key, value in saved.items() if value.shape == mine[key].shape}
print(model.load_state_dict(fitting, strict=False))
result = model.load_state_dict({**fitting, "extra.weight": torch.zeros(1)}, strict=False)
print(result.missing_keys, result.unexpected_keys)
prefixed = {f"module.{key}": value for key, value in mine.items()}
nn.modules.utils.consume_prefix_in_state_dict_if_present(prefixed, "module.")
print(model.load_state_dict(prefixed, assign=True), list(prefixed)[:2])
trunk = nn.Sequential(*list(model.children())[:-1], nn.Flatten())
print(trunk.eval()(x).mean(0), trunk)
