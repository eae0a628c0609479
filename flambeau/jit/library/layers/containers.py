"""Containers, and what all modules have."""

from __future__ import annotations


class Module:
    training: bool
    _is_full_backward_hook: Optional[bool]


class Sequential:
    def forward(self, input):
        for module in self:
            input = module(input)
        return input
