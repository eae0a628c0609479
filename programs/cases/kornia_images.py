"""kornia: filters, geometry, colours, with gradients."""

import kornia
import torch

torch.manual_seed(0)
x = torch.rand(2, 3, 24, 24, requires_grad=True)
blurred = kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5))
print("blur", blurred.sum((2, 3)).tolist())
print("sobel", kornia.filters.sobel(x).mean().item())
print("hsv", kornia.color.rgb_to_hsv(x).mean((2, 3)).tolist())
turned = kornia.geometry.transform.rotate(x, torch.tensor([30.0, -45.0]))
print("rotate", turned.sum().item())
points = torch.rand(1, 4, 2)
homography = kornia.geometry.get_perspective_transform(points, points * 2 + 1)
# where the points go: the matrix itself has zeros, which are nothing but rounding
print("homography", kornia.geometry.transform_points(homography, points).tolist())
(blurred.square().mean() + turned.mean()).backward()
print("gradient", x.grad.norm().item())
print("ssim", kornia.losses.ssim_loss(x, x.flip(0), 5).item())
