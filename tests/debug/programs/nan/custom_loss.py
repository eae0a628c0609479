"""Dice with an empty mask and an empty prediction."""

import torch


def dice(predicted, target):
    overlap = (predicted * target).sum()
    return 2 * overlap / (predicted.sum() + target.sum())  # nan


dice(torch.zeros(4, 4, requires_grad=True), torch.zeros(4, 4))
