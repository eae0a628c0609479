"""Layers that only call a function, with the names that it has in torch."""

from __future__ import annotations


class Threshold:
    def forward(self, input: Tensor) -> Tensor:
        return _threshold(input, self.threshold, self.value, self.inplace)


class Sigmoid:
    def forward(self, input: Tensor) -> Tensor:
        return torch.sigmoid(input)


class Tanh:
    def forward(self, input: Tensor) -> Tensor:
        return torch.tanh(input)


class _ReflectionPadNd:
    def forward(self, input: Tensor) -> Tensor:
        return pad(input, self.padding, "reflect")


class _ReplicationPadNd:
    def forward(self, input: Tensor) -> Tensor:
        return pad(input, self.padding, "replicate")


class _CircularPadNd:
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return pad(input, self.padding, "circular")


class CircularPad1d:
    def _check_input_dim(self, input):
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class CircularPad2d:
    def _check_input_dim(self, input):
        if input.dim() != 3 and input.dim() != 4:
            raise ValueError(f"expected 3D or 4D input (got {input.dim()}D input)")


class CircularPad3d:
    def _check_input_dim(self, input):
        if input.dim() != 4 and input.dim() != 5:
            raise ValueError(f"expected 4D or 5D input (got {input.dim()}D input)")
