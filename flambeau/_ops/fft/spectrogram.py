"""Short-time Fourier transforms: `stft` and its inverse `istft`."""

from __future__ import annotations

from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.programs import EAGER
from flambeau._core.settings import warn_once
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite
from flambeau._ops.views.basic import type_name
from flambeau._tensor.examples import numbers_under
from flambeau._tensor.tensor import Tensor

COMPLEX_ONESIDED = "Cannot have onesided output if window or input is complex"
RECTANGULAR = "explicitly set `window=torch.ones(n_fft, device=<device>)`."


def _type_name(tensor: Any) -> str:
    return f"{dt.from_numpy_dtype(tensor._data.dtype).scalar_name}"


def _sizes(tensor: Any) -> str:
    return ", ".join(map(str, tensor._data.shape))


def _window_text(window: Any) -> str:
    if window is None:
        return "None"
    return f"{type_name(window._data)}{{{list(window._data.shape)}}}"


def _flag(value: bool | None) -> Any:
    return None if value is None else int(value)


def _is_complex(tensor: Any) -> bool:
    return tensor is not None and tensor._data.dtype.kind == "c"


def _centred_window(window: Any, n_fft: int, win_length: int, like: Any) -> Any:
    """The window (ones if there is none) in the middle of n_fft values."""
    if window is None:
        window = ops.ones((win_length,), dtype=ops.real(like).dtype, device=like.device)
    if win_length == n_fft:
        return window
    left = (n_fft - win_length) // 2
    zeros = [ops.new_zeros(window, (n,)) for n in (left, n_fft - win_length - left)]
    return ops.cat([zeros[0], window, zeros[1]])


def _padded(signal: Any, amount: int, mode: str) -> Any:
    """A signal `(B, L)` or `(L,)` with `amount` values put on at both ends."""
    added = max(3 - signal.dim(), 0)  # modes pad the last of 3 dims
    for _ in range(added):
        signal = signal.unsqueeze(0)
    signal = ops.nn.functional.pad(signal, [amount, amount], mode)
    for _ in range(added):
        signal = signal.squeeze(0)
    return signal


@composite("stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, "
           "Tensor? window=None, bool center=True, str pad_mode='reflect', bool normalized=False, "
           "bool? onesided=None, bool? return_complex=None, bool? align_to_window=None)"
           " -> Tensor", autocast="cpu=float32", program=True, several=True)  # fmt: skip
def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
         window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect",
         normalized: bool = False, onesided: bool | None = None,
         return_complex: bool | None = None,
         align_to_window: bool | None = None) -> Any:  # fmt: skip
    """The spectra `(..., frequencies, frames)` of windows `hop_length` apart over a signal.

    Shapes: from (B, L) or (L,) to (B, frequencies, frames) or (frequencies, frames).

    With `center` frame t is centred at t * hop_length, the signal being padded at both ends.
    `onesided` keeps the n_fft // 2 + 1 frequencies that say all about real signals.

    >>> import flambeau as torch
    >>> spectra = torch.stft(torch.ones(16), 8, window=torch.ones(8), return_complex=True)
    >>> spectra.shape, spectra.abs()[0]
    (torch.Size([5, 9]), tensor([8., 8., 8., 8., 8., 8., 8., 8., 8.]))
    """
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    signal = _padded(input, n_fft // 2, pad_mode) if center else input
    if EAGER:
        return _spectra(signal, n_fft, hop_length, win_length, window, normalized, onesided,
                        return_complex, align_to_window)  # fmt: skip
    return ops.stft(signal, n_fft, hop_length, win_length, window, normalized, onesided,
                    return_complex, align_to_window)  # fmt: skip


def _spectra(input: Any, n_fft: int, hop_length: int | None, win_length: int | None, window: Any,
             normalized: bool, onesided: bool | None, return_complex: bool | None,
             align_to_window: bool | None) -> Any:  # fmt: skip
    """The spectra of a signal that needs no padding."""
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    single = input._data.ndim == 1
    signal: Any = input.unsqueeze(0) if single else input
    if window is None:
        warn_once("A window was not provided. A rectangular window will be applied,which is known "
              "to cause spectral leakage. Other windows such as torch.hann_window or "
              "torch.hamming_window are recommended to reduce spectral leakage.To suppress this "
              f"warning and use a rectangular window, {RECTANGULAR}")  # fmt: skip
    complex_values = _is_complex(input) or _is_complex(window)
    if return_complex is None and not complex_values:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further "
            "require that return_complex=True in a future PyTorch release."
        )
    if return_complex is False:
        warn_once("stft with return_complex=False is deprecated. In a future pytorch release, stft "
              "will return complex tensors for all inputs, and return_complex=False will raise an "
              "error.\nNote: you can still call torch.view_as_real on the complex output to "
              "recover the old return format.")  # fmt: skip
    flags = f"normalized={int(normalized)}, onesided={_flag(onesided)}"
    shape = list(signal._data.shape[1:] if single else signal._data.shape)
    head = (f"stft({type_name(input._data)}[{', '.join(map(str, shape))}], n_fft={n_fft}, "
            f"hop_length={hop}, win_length={width}, window={_window_text(window)}, {flags}, "
            f"return_complex={_flag(return_complex)}, align_to_window={_flag(align_to_window)})"
            " : ")  # fmt: skip
    _check_stft(head, input, signal, n_fft, hop, width, window)
    if onesided is None:
        onesided = not complex_values
    if onesided and complex_values:
        raise RuntimeError(COMPLEX_ONESIDED)
    if align_to_window:
        signal = _aligned(signal, n_fft, width)
    frames = signal.unfold(-1, n_fft, hop) * _centred_window(window, n_fft, width, input)
    transform = ops.fft.rfft if onesided else ops.fft.fft
    spectra = transform(frames, norm="ortho" if normalized else None).transpose(1, 2)
    result = spectra.squeeze(0) if single else spectra
    if return_complex is False:
        return ops.view_as_real(result)
    return result


def _aligned(signal: Any, n_fft: int, width: int) -> Any:
    """Zeros at both ends so that the first window, not the first frame, starts the signal."""
    left = (n_fft - width) // 2
    ends = [ops.new_zeros(signal, (len(signal), n)) for n in (left, n_fft - width - left)]
    return ops.cat([ends[0], signal, ends[1]], -1)


def _check_stft(head: str, input: Any, signal: Any, n_fft: int, hop: int, width: int,
                window: Any) -> None:  # fmt: skip
    if input._data.dtype.kind not in "fcVW":
        raise RuntimeError(head + "expected a tensor of floating point or complex values")
    if signal._data.ndim != 2:
        raise RuntimeError(head + "expected a 1D or 2D tensor")
    length = signal._data.shape[-1]
    if n_fft <= 0 or n_fft > length:
        raise RuntimeError(f"{head}expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{head}expected hop_length > 0, but got hop_length={hop}")
    if width <= 0 or width > n_fft:
        raise RuntimeError(f"{head}expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and window._data.shape != (width,):
        raise RuntimeError(
            f"{head}expected a 1D window tensor of size equal to win_length={width}, but got "
            f"window with size {list(window._data.shape)}"
        )


@composite("istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, "
           "Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None, "
           "int? length=None, bool return_complex=False) -> Tensor")  # fmt: skip
def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
          window: Any = None, center: bool = True, normalized: bool = False,
          onesided: bool | None = None, length: int | None = None,
          return_complex: bool = False) -> Any:  # fmt: skip
    """The signal whose `stft` comes closest to the given spectra (Griffin and Lim 1984).

    Shapes: from (B, frequencies, frames) or (frequencies, frames) to (B, L) or (L,).

    Frames are windowed again, added up where they overlap, and divided by the sum of the squared
    windows. `length` cuts or fills the result.

    >>> import flambeau as torch
    >>> signal, window = torch.arange(16.), torch.hann_window(8)
    >>> spectra = torch.stft(signal, 8, window=window, return_complex=True)
    >>> torch.istft(spectra, 8, window=window, length=16).round()[1:4]
    tensor([1., 2., 3.])
    """
    if window is None:
        warn_once("A window was not provided. A rectangular window will be applied.Please provide "
              "the same window used by stft to make the inversion lossless.To suppress this "
              f"warning and use a rectangular window, {RECTANGULAR}")  # fmt: skip
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    head = (f"istft(CPU{_type_name(input)}Type[{_sizes(input)}], n_fft={n_fft}, hop_length={hop}, "
            f"win_length={width}, window={_window_text(window)}, center={int(center)}, "
            f"normalized={int(normalized)}, onesided={_flag(onesided)}, length={length}, "
            f"return_complex={int(return_complex)}) ")  # fmt: skip
    _check_istft(head, input, n_fft, hop, width, window, onesided)
    one_sided = _one_sided(input, n_fft, window, onesided, return_complex)
    single = input._data.ndim == 2
    spectra: Any = input.unsqueeze(0) if single else input
    weights = _centred_window(window, n_fft, width, input)
    frames = spectra.transpose(1, 2)
    norm = "ortho" if normalized else None
    if return_complex:
        frames = ops.fft.ifft(frames, norm=norm)
    else:
        half = frames if one_sided else frames.narrow(-1, 0, n_fft // 2 + 1)
        frames = ops.fft.irfft(half, n_fft, norm=norm)
    signal = _overlap_add(frames * weights, n_fft, hop)
    envelope = _overlap_add((weights * weights).expand(1, frames.shape[1], n_fft), n_fft, hop)
    result = _trimmed(head, signal, envelope, n_fft, center, length)
    return result.squeeze(0) if single else result


def _overlap_add(frames: Any, n_fft: int, hop: int) -> Any:
    """Frames `(B, T, n_fft)` added up `hop` apart: `(B, n_fft + hop * (T - 1))`."""
    count = frames._data.shape[1]
    size = n_fft + hop * (count - 1)
    columns = frames.transpose(1, 2)
    planes = ops.col2im(columns, (1, size), (1, n_fft), (1, 1), (0, 0), (1, hop))
    return planes.reshape(frames._data.shape[0], size)


def _one_sided(input: Any, n_fft: int, window: Any, onesided: bool | None,
               return_complex: bool) -> bool:  # fmt: skip
    frequencies = input._data.shape[-2]
    if onesided is None:
        onesided = frequencies != n_fft or n_fft == 1
    if return_complex and onesided:
        raise RuntimeError(COMPLEX_ONESIDED)
    if not return_complex and _is_complex(window):
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    return onesided


def _check_istft(head: str, input: Any, n_fft: int, hop: int, width: int, window: Any,
                 onesided: bool | None) -> None:  # fmt: skip
    if not _is_complex(input):
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from "
                           "stft with return_complex=True.")  # fmt: skip
    shape = input._data.shape
    if not input._data.size:
        raise RuntimeError(f"{head}: input tensor cannot be empty.")
    if len(shape) not in (2, 3):
        raise RuntimeError(
            f"{head}: expected a tensor with 3 or 4 dimensions, but got {len(shape) + 1}"
        )
    one_sided = shape[-2] != n_fft if onesided is None else onesided
    if one_sided and shape[-2] != n_fft // 2 + 1:
        raise RuntimeError(
            f"{head}: expected the frequency dimension (3rd to the last) of the input tensor to "
            f"match n_fft / 2 + 1 when onesided=True, but got {shape[-2]}"
        )
    if not one_sided and shape[-2] != n_fft:
        raise RuntimeError(
            f"{head}: expected the frequency dimension (3rd to the last) of the input tensor to "
            f"match n_fft when onesided=False, but got {shape[-2]}"
        )
    if not 0 < hop <= width:
        raise RuntimeError(f"{head}: expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{head}: expected 0 < win_length <= n_fft")
    if window is not None and window._data.shape != (width,):
        raise RuntimeError(
            f"{head}: Invalid window shape. window has to be 1D and length of `win_length`"
        )


def _trimmed(head: str, signal: Any, envelope: Any, n_fft: int, center: bool,
             length: int | None) -> Any:  # fmt: skip
    """Without the padding of centred frames, divided by the windows' sum, `length` values long."""
    total = signal._data.shape[-1]
    start = n_fft // 2 if center else 0
    end = total - n_fft // 2 if center else total
    if length is not None:
        end = start + length
    stop = min(end, total)
    signal = signal.narrow(-1, start, stop - start)
    envelope = envelope.narrow(-1, start, stop - start)
    smallest = abs(numbers_under(envelope._data)).min()
    if not smallest > 1e-11:
        raise RuntimeError(f"{head}window overlap add min: 1\n[ CPUBoolType{{}} ]")
    result = signal / envelope
    if end <= total:
        return result
    warn_once("The length of signal is shorter than the length parameter. Result is being padded "
          "with zeros in the tail. Please check your center and hop_length settings.")  # fmt: skip
    return ops._resize_ends(result, (result._data.shape[0], end - start))
