"""captum: which inputs a network's answer comes from."""

import torch
from captum.attr import DeepLift, IntegratedGradients, LayerGradCam, Occlusion, Saliency

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(),
    torch.nn.Linear(64, 3),
).eval()  # fmt: skip
x = torch.rand(2, 1, 4, 4)
for method in (Saliency, IntegratedGradients, DeepLift):
    print(method.__name__, method(net).attribute(x, target=1).tolist())
print("gradcam", LayerGradCam(net, net[0]).attribute(x, target=2).tolist())
window = Occlusion(net).attribute(x, sliding_window_shapes=(1, 2, 2), strides=(1, 2, 2), target=0)
print("occlusion", window.tolist())
