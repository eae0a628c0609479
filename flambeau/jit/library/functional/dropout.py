"""Dropout."""

from __future__ import annotations


def _check_share(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_share(p)
    return torch.dropout_(input, p, training) if inplace else torch.dropout(input, p, training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False,
                  inplace: bool = False) -> Tensor:  # fmt: skip
    _check_share(p)
    if inplace:
        return torch.alpha_dropout_(input, p, training)
    return torch.alpha_dropout(input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False,
                          inplace: bool = False) -> Tensor:  # fmt: skip
    _check_share(p)
    if inplace:
        return torch.feature_alpha_dropout_(input, p, training)
    return torch.feature_alpha_dropout(input, p, training)


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    if inplace:
        return torch.feature_dropout_(input, p, training)
    return torch.feature_dropout(input, p, training)


def _drop_unbatched(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    if not inplace:
        return torch.feature_dropout(input.unsqueeze(0), p, training).squeeze(0)
    return torch.feature_dropout_(input.unsqueeze_(0), p, training).squeeze_(0)


def _purpose(name: str, spatial: int) -> str:
    places = "1 spatial dimension" if spatial == 1 else f"{spatial} spatial dimensions"
    return (
        f"Note that {name} exists to provide channel-wise dropout on inputs with {places}, a "
        "channel dimension, and an optional batch dimension "
        f"(i.e. {spatial + 1}D or {spatial + 2}D inputs)."
    )


def _discouraged(name: str, ndim: int, spatial: int) -> str:
    return (
        f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an "
        "error in a future release. To retain the behavior and silence this warning, please use "
        f"dropout instead. {_purpose(name, spatial)}"
    )


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True,
              inplace: bool = False) -> Tensor:  # fmt: skip
    _check_share(p)
    ndim = input.dim()
    if ndim == 3:
        return _drop_channels(input, p, training, inplace)
    if ndim == 2:
        return _drop_unbatched(input, p, training, inplace)
    raise RuntimeError(
        f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. "
        f"{_purpose('dropout1d', 1)}"
    )


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True,
              inplace: bool = False) -> Tensor:  # fmt: skip
    _check_share(p)
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise "
            "1D dropout behavior is desired - input is interpreted as shape (N, C, L), where C "
            "is the channel dim. This behavior will change in a future release to interpret the "
            "input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    elif input.dim() != 4:
        warnings.warn(_discouraged("dropout2d", input.dim(), 2))
    return _drop_channels(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True,
              inplace: bool = False) -> Tensor:  # fmt: skip
    _check_share(p)
    if input.dim() == 5:
        return _drop_channels(input, p, training, inplace)
    if input.dim() != 4:
        warnings.warn(_discouraged("dropout3d", input.dim(), 3))
    return _drop_unbatched(input, p, training, inplace)
