"""foolbox: attacks on a small network, in double precision."""

import foolbox
import torch
from foolbox import attacks
from foolbox.distances import l2
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ELU(), nn.Flatten(), nn.Linear(144, 3)).eval()
box = foolbox.PyTorchModel(net, bounds=(0, 1), device="cpu", preprocessing={"mean": 0.4})
images = torch.rand(6, 1, 8, 8)
labels = net(images - 0.4).argmax(-1)
print("accuracy", foolbox.accuracy(box, images, labels), labels.tolist())
for attack in (
    attacks.LinfFastGradientAttack(),
    attacks.L2FastGradientAttack(),
    attacks.LinfProjectedGradientDescentAttack(steps=5, random_start=False),
    attacks.L1ProjectedGradientDescentAttack(steps=5, random_start=False),
    attacks.L2AdamBasicIterativeAttack(steps=5),
    attacks.L2MomentumIterativeFastGradientMethod(steps=4),
    attacks.L2DeepFoolAttack(steps=10),
    attacks.LinfDeepFoolAttack(steps=10),
    attacks.DDNAttack(steps=8),
    attacks.L2CarliniWagnerAttack(binary_search_steps=2, steps=12),
    attacks.EADAttack(binary_search_steps=2, steps=12),
    attacks.NewtonFoolAttack(steps=6),
    attacks.L2FMNAttack(steps=10),
    attacks.InversionAttack(distance=l2),
    attacks.L2ContrastReductionAttack(),
    attacks.BinarySearchContrastReductionAttack(distance=l2),
    attacks.VirtualAdversarialAttack(steps=3),
    attacks.SparseL1DescentAttack(steps=4),
    attacks.GaussianBlurAttack(steps=5, distance=l2),
    attacks.L2AdditiveGaussianNoiseAttack(),
    attacks.LinfRepeatedAdditiveUniformNoiseAttack(repeats=5),
):
    torch.manual_seed(1)
    raw, clipped, done = attack(box, images, labels, epsilons=[0.05, 0.3, 2.0])
    sizes = [(part - images).abs().mean().item() for part in clipped]
    print(type(attack).__name__, done.int().tolist(), sizes)
criterion = foolbox.criteria.TargetedMisclassification((labels + 1) % 3)
_, clipped, done = attacks.LinfPGD(steps=10, random_start=False)(
    box, images, criterion, epsilons=0.2
)
print("targeted", done.tolist(), net(clipped - 0.4).argmax(-1).tolist())
far = l2(images, clipped), foolbox.distances.linf(images, clipped)
print("distances", [part.tolist() for part in far])
