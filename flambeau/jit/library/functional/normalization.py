"""Normalization."""

from __future__ import annotations


def _check_values(size: List[int]) -> None:
    count = 1
    for dim, length in enumerate(size):
        if dim != 1:
            count *= length
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


def batch_norm(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor],
               weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               training: bool = False, momentum: float = 0.1, eps: float = 1e-5
               ) -> Tensor:  # fmt: skip
    if training:
        _check_values(input.size())
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum,
                            eps, torch.backends.cudnn.enabled)  # fmt: skip


def instance_norm(input: Tensor, running_mean: Optional[Tensor] = None,
                  running_var: Optional[Tensor] = None, weight: Optional[Tensor] = None,
                  bias: Optional[Tensor] = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:  # fmt: skip
    if use_input_stats:
        places = 1
        for length in input.size()[2:]:
            places *= length
        if places == 1:
            raise ValueError(
                f"Expected more than 1 spatial element when training, got input size {input.size()}"
            )
    return torch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats,
                               momentum, eps, torch.backends.cudnn.enabled)  # fmt: skip


def layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None,
               bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:  # fmt: skip
    return torch.layer_norm(
        input, normalized_shape, weight, bias, eps, torch.backends.cudnn.enabled
    )  # fmt: skip


def rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None,
             eps: Optional[float] = None) -> Tensor:  # fmt: skip
    return torch.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor] = None,
               bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:  # fmt: skip
    sizes = input.size()
    if len(sizes) < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {len(sizes)}"
        )
    _check_values([sizes[0] * sizes[1] // num_groups, num_groups] + sizes[2:])
    return torch.group_norm(input, num_groups, weight, bias, eps, torch.backends.cudnn.enabled)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75,
                        k: float = 1.0) -> Tensor:  # fmt: skip
    if input.dim() < 3:
        raise ValueError(
            "Expected 3D or higher dimensionality                          "
            f"input (got {input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    energy = (input * input).flatten(2).unsqueeze(1)  # (N, 1, C, places)
    around = torch.pad(energy, [0, 0, size // 2, (size - 1) // 2])
    mean = torch.avg_pool2d(around, [size, 1], 1).reshape(input.size())
    return input / (mean * alpha + k) ** beta


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12,
              out: Optional[Tensor] = None) -> Tensor:  # fmt: skip
    length = input.norm(p, dim, keepdim=True).clamp_min(eps)
    return input / length if out is None else torch.div(input, length, out=out)
