"""`torch.functional`: functions of `torch` that are programs."""

from __future__ import annotations


def stft(input: Tensor, n_fft: int, hop_length: Optional[int] = None,
         win_length: Optional[int] = None, window: Optional[Tensor] = None, center: bool = True,
         pad_mode: str = "reflect", normalized: bool = False, onesided: Optional[bool] = None,
         return_complex: Optional[bool] = None, align_to_window: Optional[bool] = None
         ) -> Tensor:  # fmt: skip
    signal = _padded_signal(input, n_fft // 2, pad_mode) if center else input
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    return torch.stft(signal, n_fft, hop_length, win_length, window, normalized, onesided,
                      return_complex, align_to_window)  # fmt: skip


def _padded_signal(signal: Tensor, margin: int, mode: str) -> Tensor:
    wide = signal if signal.dim() == 2 else signal.unsqueeze(0)  # modes pad the last of 2 or 3 dims
    padded = torch.pad(wide, [margin, margin], mode)
    return padded if signal.dim() == 2 else padded.squeeze(0)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0,
          compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:  # fmt: skip
    number: Optional[int] = None
    if compute_mode == "use_mm_for_euclid_dist":
        number = 1
    elif compute_mode == "donot_use_mm_for_euclid_dist":
        number = 2
    elif compute_mode != "use_mm_for_euclid_dist_if_necessary":
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return torch.cdist(x1, x2, p, number)


# ---- unique values: with the place of each element's value, how often each is there, or both


def _unique(input: Tensor, sorted: bool, inverse: bool, counts: bool, dim: Optional[int]
            ) -> Tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    if dim is None:
        return torch._unique2(input, sorted, inverse, counts)
    return torch.unique_dim(input, dim, sorted, inverse, counts)


def _return_output(input: Tensor, sorted: bool = True, return_inverse: bool = False,
                   return_counts: bool = False, dim: Optional[int] = None) -> Tensor:  # fmt: skip
    return _unique(input, sorted, False, False, dim)[0]


def _return_inverse(input: Tensor, sorted: bool = True, return_inverse: bool = False,
                    return_counts: bool = False, dim: Optional[int] = None
                    ) -> Tuple[Tensor, Tensor]:  # fmt: skip
    found = _unique(input, sorted, True, False, dim)
    return found[0], found[1]


def _return_counts(input: Tensor, sorted: bool = True, return_inverse: bool = False,
                   return_counts: bool = False, dim: Optional[int] = None
                   ) -> Tuple[Tensor, Tensor]:  # fmt: skip
    found = _unique(input, sorted, False, True, dim)
    return found[0], found[2]


def _return_inverse_and_counts(input: Tensor, sorted: bool = True, return_inverse: bool = False,
                               return_counts: bool = False, dim: Optional[int] = None
                               ) -> Tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    return _unique(input, sorted, True, True, dim)


def _consecutive_return_output(input: Tensor, return_inverse: bool = False,
                               return_counts: bool = False, dim: Optional[int] = None
                               ) -> Tensor:  # fmt: skip
    return torch.unique_consecutive(input, False, False, dim)[0]


def _consecutive_return_inverse(input: Tensor, return_inverse: bool = False,
                                return_counts: bool = False, dim: Optional[int] = None
                                ) -> Tuple[Tensor, Tensor]:  # fmt: skip
    found = torch.unique_consecutive(input, True, False, dim)
    return found[0], found[1]


def _consecutive_return_counts(input: Tensor, return_inverse: bool = False,
                               return_counts: bool = False, dim: Optional[int] = None
                               ) -> Tuple[Tensor, Tensor]:  # fmt: skip
    found = torch.unique_consecutive(input, False, True, dim)
    return found[0], found[2]


def _consecutive_return_inverse_and_counts(input: Tensor, return_inverse: bool = False,
                                           return_counts: bool = False, dim: Optional[int] = None
                                           ) -> Tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    return torch.unique_consecutive(input, True, True, dim)
