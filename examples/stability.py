"""Numerical stability: softmax and cross entropy that do not overflow, and their gradients.

Usage: `flambeau run examples/stability.py`
"""

import torch


def unstable_softmax(logits):
    exp = torch.exp(logits)
    return exp / torch.sum(exp)


def softmax(logits):
    """The largest logit becomes 0, so that no exponential exceeds 1."""
    exp = torch.exp(logits - torch.max(logits))
    return exp / torch.sum(exp)


def unstable_cross_entropy(labels, logits):
    return -torch.sum(labels * torch.log(softmax(logits)))


def cross_entropy(labels, logits, dim=-1):
    """The logarithm of the sum is taken as a whole: no small number becomes 0 before its log."""
    scaled = logits - torch.max(logits)
    return -torch.sum(labels * (scaled - torch.logsumexp(scaled, dim)))


def main():
    for value in (1e-50, 1e39):
        y = torch.tensor(value)  # float32 has neither number
        print(f"x * y / y for y = {value}:", torch.tensor(1.0) * y / y)
    logits, labels = torch.tensor([1000.0, 0.0]), torch.tensor([0.5, 0.5])
    print("softmax:", unstable_softmax(logits), "stable:", softmax(logits))
    print("cross entropy:", unstable_cross_entropy(labels, logits), "stable:", end=" ")
    print(cross_entropy(labels, logits))
    logits.requires_grad_(True)
    (gradient,) = torch.autograd.grad(cross_entropy(labels, logits), logits)
    print("gradient:", gradient)
    built_in = torch.nn.functional.cross_entropy(logits, labels)
    print("built in:", built_in.item(), torch.finfo(torch.float32).max)


if __name__ == "__main__":
    main()
