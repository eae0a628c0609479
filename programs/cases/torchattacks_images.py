"""torchattacks: adversarial images."""

import copy

import torch
import torchattacks

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 6, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(24, 4),
).eval()
double = copy.deepcopy(net).double()
x, y = torch.rand(4, 3, 12, 12), torch.tensor([0, 1, 2, 3])
for name, attack in {
    "fgsm": torchattacks.FGSM(net),
    "pgd": torchattacks.PGD(net, steps=4),
    "bim": torchattacks.BIM(net, steps=4),
    "mifgsm": torchattacks.MIFGSM(net, steps=3),
    "deepfool": torchattacks.DeepFool(double, steps=5),  # ends on the border between two classes
    "difgsm": torchattacks.DIFGSM(net, steps=3),
    "tifgsm": torchattacks.TIFGSM(net, steps=3),
    "square": torchattacks.Square(net, n_queries=10),
    "pgdl2": torchattacks.PGDL2(net, steps=3),
    "jitter": torchattacks.Jitter(net, steps=3),
}.items():
    torch.manual_seed(1)
    attacked, images = (double, x.double()) if name == "deepfool" else (net, x)
    adv = attack(images, y)
    print(name, (adv - images).abs().sum().item(), attacked(adv).argmax(1).tolist())
