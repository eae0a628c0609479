"""Formulas that overflow, and have an operator of their own."""

import torch

x = torch.randn(6, 5, requires_grad=True)
exp = x.exp()
weights = exp / exp.sum(1, keepdim=True)  # advice: a formula by hand
positive = torch.log(1 + torch.exp(x))  # advice: a formula by hand
total = x.exp().sum(dim=1).log()  # advice: a formula by hand
unlikely = torch.log(1 - torch.sigmoid(x))  # advice: a formula by hand
length = torch.sqrt((x**2).sum(dim=1))  # advice: a formula by hand
spread = (x * x).mean(1) - x.mean(1) ** 2  # advice: a formula by hand
