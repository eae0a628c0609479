"""`torch.fft`: Fourier transforms of one, two and more dims, in the input's precision.

Three rows do the work: complex to complex, real to complex (half of the spectrum says it all) and
complex to real. `normalization` is 0 (none), 1 (divide by the root of the size) or 2 (by the size);
each row is linear and its adjoint is made of the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.device import refuse_pinned
from flambeau._core.doc_text import with_example
from flambeau._ops.factories import making as factories
from flambeau._ops.table.call_text import repeated
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel
from flambeau._ops.table.outputs import write_out
from flambeau._runtime import cpu
from flambeau._tensor.tensor import Tensor, on_device_of, wrap

Array = np.ndarray
FORWARD_NORMS = ("backward", "ortho", "forward")
"""NumPy's names of the scalings 0, 1, 2 of a forward transform; reversed for an inverse one."""


def _norm(normalization: int, forward: bool) -> Any:
    return FORWARD_NORMS[normalization if forward else 2 - normalization]


# ---- where results lie


def _by_stride(data: Array, dims: Sequence[int]) -> list[int]:
    """Some dims, those first in which neighbours are farthest apart."""
    strides = cpu.element_strides(data)
    return sorted(dims, key=lambda dim: -strides[dim])


def _others(data: Array, dims: Sequence[int]) -> list[int]:
    """The dims that are not transformed, in the order in which they are laid out: those that are
    change places with the last ones that are not, then strides decide."""
    order = list(range(data.ndim))
    first, last = 0, data.ndim
    while True:
        while first < last and order[first] not in dims:
            first += 1
        last -= 1
        while first < last and order[last] in dims:
            last -= 1
        if first >= last:
            return _by_stride(data, order[:first])
        order[first], order[last] = order[last], order[first]
        first += 1


def _memory(data: Array, dims: Sequence[int], shape: Sequence[int], dtype: Any) -> Array:
    """Memory for a transform over `dims`: these are innermost, in this order."""
    order = [*_others(data, dims), *dict.fromkeys(dims)]
    held = np.empty([shape[dim] for dim in order], dtype)
    return held.transpose(np.argsort(order))


# ---- rows


@kernel("_resize_ends(Tensor self, int[] size) -> Tensor", function=False,
        node="ConstantPadNdBackward0", backward={
    "self": lambda grad, self_shape: ops._resize_ends(grad, size=self_shape),
})  # fmt: skip
def _resize_ends(data: Array, size: Any) -> Array:
    """Zeros put on, or elements cut off, at the end of each dim."""
    result = np.zeros(tuple(size), data.dtype)
    common = tuple(slice(min(n, have)) for n, have in zip(size, data.shape, strict=True))
    result[common] = data[common]
    return result


@kernel("_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor",
        method=False, node="FftC2CBackward0", backward={
    "self": lambda grad, dim, normalization, forward: ops._fft_c2c(
        grad, dim, normalization, not forward),
})  # fmt: skip
def _fft_c2c(data: Array, dim: Any, normalization: int, forward: bool) -> Array:
    """Complex to complex over some dims."""
    if not dim:
        return np.array(data)
    result = _memory(data, _by_stride(data, dim), data.shape, data.dtype)
    function = np.fft.fftn if forward else np.fft.ifftn
    return function(data, axes=tuple(dim), norm=_norm(normalization, forward), out=result)


def _real_backward(grad: Any, self_shape: Any, dim: Any, normalization: int,
                   onesided: bool) -> Any:  # fmt: skip
    """The adjoint of a real transform: the real part of the inverse one.

    A half spectrum is taken as a whole one whose other half is zero, so its inner values count
    half in a transform to real numbers, which would count them twice.
    """
    if not onesided:
        return ops.real(ops._fft_c2c(grad, dim, normalization, False))
    size = self_shape[dim[-1]]
    weighted = grad * _inner_weights(grad, dim[-1], size, 0.5)
    return ops._fft_c2r(weighted, dim, normalization, size)


def _inner_weights(tensor: Any, dim: int, size: int, factor: float) -> Any:
    """1 for the values of a half spectrum that are their own mirror image, `factor` for others."""
    real = np.zeros(0, tensor._data.dtype).real.dtype
    weights = np.ones(size // 2 + 1, real)
    weights[1 : (size + 1) // 2] = factor
    shape = [1] * tensor._data.ndim
    shape[dim] = -1
    return on_device_of(wrap(weights.reshape(shape)), tensor)


@kernel("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
        method=False, node="FftR2CBackward0", saved_names={"self_shape": None},
        also_saved=("self",),
        backward={"self": _real_backward})  # fmt: skip
def _fft_r2c(data: Array, dim: Any, normalization: int, onesided: bool) -> Array:
    """Real to complex over some dims; `onesided` keeps size // 2 + 1 values of the last one."""
    norm = _norm(normalization, True)
    shape = list(data.shape)
    if onesided:
        shape[dim[-1]] = shape[dim[-1]] // 2 + 1
    order = [*_by_stride(data, dim[:-1]), dim[-1]]
    result = _memory(data, order, shape, np.result_type(data.dtype, np.complex64))
    if not onesided:
        return np.fft.fftn(data, axes=tuple(dim), norm=norm, out=result)
    np.fft.rfft(data, axis=dim[-1], norm=norm, out=result)
    if len(dim) > 1:
        np.fft.fftn(result, axes=tuple(dim[:-1]), norm=norm, out=result)
    return result


@kernel("_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor",
        method=False, node="FftC2RBackward0", saved_names={"last_dim_size": None},
        backward={
    "self": lambda grad, dim, normalization, last_dim_size: (
        (half := ops._fft_r2c(grad, dim, normalization, True))
        * _inner_weights(half, dim[-1], last_dim_size, 2.0)),
})  # fmt: skip
def _fft_c2r(data: Array, dim: Any, normalization: int, last_dim_size: int) -> Array:
    """The inverse of a half spectrum: real, with `last_dim_size` values along the last dim."""
    norm = _norm(normalization, False)
    if len(dim) > 1:
        between = _memory(data, _by_stride(data, dim[:-1]), data.shape, data.dtype)
        data = np.fft.ifftn(data, axes=tuple(dim[:-1]), norm=norm, out=between)
    shape = list(data.shape)
    shape[dim[-1]] = last_dim_size
    result = _memory(data, dim[-1:], shape, data.real.dtype)
    return np.fft.irfft(data, last_dim_size, dim[-1], norm, out=result)


# ---- arguments


def _normalization(norm: str | None, forward: bool) -> int:
    if norm is None or norm == "backward":
        return 0 if forward else 2
    if norm == "forward":
        return 2 if forward else 0
    if norm == "ortho":
        return 1
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _promoted(input: Any, needs_complex: bool) -> Any:
    """Integers as the default type; half types are refused; complex where needed."""
    numpy_dtype = input._data.dtype
    if numpy_dtype in dt.NUMPY_HALVES:
        raise RuntimeError(f"Unsupported dtype {_scalar_name(input)}")
    if numpy_dtype.kind in "W":
        raise RuntimeError("MKL FFT doesn't support tensors of type: Half")
    if numpy_dtype.kind in "biu":
        numpy_dtype = dt.Defaults.numpy_dtype
    if needs_complex and numpy_dtype.kind != "c":
        numpy_dtype = np.result_type(numpy_dtype, np.complex64)
    if numpy_dtype == input._data.dtype:
        return input
    return ops._to_copy(input, dtype=dt.from_numpy_dtype(numpy_dtype))


def _scalar_name(tensor: Any) -> str:
    return dt.from_numpy_dtype(tensor._data.dtype).scalar_name


def _real_input(input: Any, words: str) -> Any:
    _check_real(input, words)
    return _promoted(input, False)


def _check_real(input: Any, words: str) -> None:
    if input._data.dtype.kind == "c":
        raise RuntimeError(f"{words}, but {_got(words)} {_scalar_name(input)}")


def _got(words: str) -> str:
    return "found:" if words.startswith("Only") else "got"


def _wrap_fft_dim(dim: int, ndim: int) -> int:
    if ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, ndim)


def _check_points(size: int) -> int:
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return size


def _resized(input: Any, dims: Any, sizes: Any) -> Any:
    """The input with zeros put on or elements cut off along some dims."""
    shape = input._data.shape
    missing = [0] * (2 * len(shape))
    for dim, size in zip(dims, sizes, strict=True):
        if _check_points(size) < shape[dim]:
            input = ops.slice(input, dim, 0, size)
        missing[2 * (len(shape) - dim) - 1] = max(size - shape[dim], 0)
    return ops.constant_pad_nd(input, missing) if any(missing) else input


def _dims_and_sizes(input: Any, s: Any, dim: Any) -> tuple[list[int], list[int]]:
    """The dims to transform, and their sizes (-1 keeps a size)."""
    shape = input._data.shape
    s = None if s is None else repeated(s, 1)
    dim = None if dim is None else repeated(dim, 1)
    if dim is not None:
        dims = [_wrap_fft_dim(d, len(shape)) for d in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is None:
        dims = list(range(len(shape)))
    else:
        if len(s) > len(shape):
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has "
                               f"{len(shape)} dimensions.")  # fmt: skip
        dims = list(range(len(shape) - len(s), len(shape)))
    wanted = s if s is not None else [-1] * len(dims)
    sizes = [shape[d] if size == -1 else size for d, size in zip(dims, wanted, strict=True)]
    return dims, [_check_points(size) for size in sizes]


# ---- transforms of one dim: (input, n, dim, norm)


def _complex_1d(forward: bool) -> Callable[..., Any]:
    def transform(name: str, input: Any, n: int | None, dim: int, norm: str | None) -> Any:
        input = _promoted(input, False)
        dim = _wrap_fft_dim(dim, input._data.ndim)
        input = _resized(input, (dim,), (input._data.shape[dim] if n is None else n,))
        scale = _normalization(norm, forward)
        if input._data.dtype.kind == "c":
            return ops._fft_c2c(input, (dim,), scale, forward)
        result = ops._fft_r2c(input, (dim,), scale, False)
        return result if forward else ops.conj(result)

    return transform


def _real_1d(forward: bool) -> Callable[..., Any]:
    def transform(name: str, input: Any, n: int | None, dim: int, norm: str | None) -> Any:
        input = _real_input(input, f"{name} expects a real input tensor")
        dim = _wrap_fft_dim(dim, input._data.ndim)
        input = _resized(input, (dim,), (input._data.shape[dim] if n is None else n,))
        result = ops._fft_r2c(input, (dim,), _normalization(norm, forward), True)
        return result if forward else ops.conj(result)

    return transform


def _to_real_1d(forward: bool) -> Callable[..., Any]:
    def transform(name: str, input: Any, n: int | None, dim: int, norm: str | None) -> Any:
        input = _promoted(input, True)
        dim = _wrap_fft_dim(dim, input._data.ndim)
        size = _check_points(2 * (input._data.shape[dim] - 1) if n is None else n)
        input = _resized(input, (dim,), (size // 2 + 1,))
        if forward:
            input = ops.conj_physical(input)
        return ops._fft_c2r(input, (dim,), _normalization(norm, forward), size)

    return transform


# ---- transforms of several dims: (input, s, dim, norm)


def _complex_nd(forward: bool) -> Callable[..., Any]:
    def transform(name: str, input: Any, s: Any, dim: Any, norm: str | None) -> Any:
        dims, sizes = _dims_and_sizes(input, s, dim)
        input = _resized(_promoted(input, True), dims, sizes)
        return ops._fft_c2c(input, dims, _normalization(norm, forward), forward)

    return transform


def _real_nd(forward: bool) -> Callable[..., Any]:
    words = "{} expects a real-valued input tensor" if forward else (
        "Only supports floating-point dtypes")  # fmt: skip

    def transform(name: str, input: Any, s: Any, dim: Any, norm: str | None) -> Any:
        if forward:
            _check_real(input, words.format("rfftn"))
        dims, sizes = _dims_and_sizes(input, s, dim)
        if not dims:
            raise RuntimeError(f"{name} must transform at least one axis")
        input = _resized(_real_input(input, words), dims, sizes)
        scale = _normalization(norm, forward)
        if forward:
            return ops._fft_r2c(input, dims, scale, True)
        half = ops.conj(ops._fft_r2c(input, dims[-1:], scale, True))
        return ops._fft_c2c(half, dims[:-1], scale, False) if len(dims) > 1 else half

    return transform


def _to_real_nd(forward: bool) -> Callable[..., Any]:
    def transform(name: str, input: Any, s: Any, dim: Any, norm: str | None) -> Any:
        s = None if s is None else repeated(s, 1)
        dims, sizes = _dims_and_sizes(input, s, dim)
        if not dims:
            raise RuntimeError(f"{name} must transform at least one axis")
        last = None if s is None else s[-1]
        if last is None or last == -1:
            sizes[-1] = _check_points(2 * (input._data.shape[dims[-1]] - 1))
        size = sizes[-1]
        input = _resized(_promoted(input, True), dims, [*sizes[:-1], size // 2 + 1])
        scale = _normalization(norm, forward)
        if forward:
            if len(dims) > 1:
                input = ops._fft_c2c(input, dims[:-1], scale, True)
            return ops._fft_c2r(ops.conj_physical(input), dims[-1:], scale, size)
        return ops._fft_c2r(input, dims, scale, size)

    return transform


FAMILIES: dict[str, tuple[Callable[[bool], Any], Callable[[bool], Any], bool, str]] = {
    "fft": (_complex_1d, _complex_nd, True, "The discrete Fourier transform"),
    "ifft": (_complex_1d, _complex_nd, False, "The inverse of `fft`"),
    "rfft": (_real_1d, _real_nd, True, "`fft` of real numbers, without the mirrored half"),
    "irfft": (_to_real_1d, _to_real_nd, False, "The inverse of `rfft`: real numbers"),
    "hfft": (_to_real_1d, _to_real_nd, True, "`fft` of half a Hermitian signal: real numbers"),
    "ihfft": (_real_1d, _real_nd, False, "The inverse of `hfft`"),
}
"""name: (transform of one dim, of several dims, whether it is a forward transform, its doc)."""


LENGTHS = {"fft": 3, "ifft": 3, "rfft": 2, "irfft": 4, "hfft": 4, "ihfft": 2}
"""How many values three become, for the examples."""


def _family(name: str, one: Any, several: Any, doc: str) -> None:
    def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *,
            out: Any = None) -> Any:  # fmt: skip
        result = one(name, input, n, dim, norm)
        return result if out is None else _written(row, out, result, input)

    fft.__name__ = name
    fft.__doc__ = with_example(
        f"{doc}, along `dim`, cut or filled up to `n` values.",
        f"torch.fft.{name}(torch.ones(2, 3)).shape", f"torch.Size([2, {LENGTHS[name]}])",
    )  # fmt: skip
    row = composite(f"{name}(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor",
                    autocast="cpu=float32", namespace="fft", method=False)(fft)  # fmt: skip

    for suffix, default in (("2", (-2, -1)), ("n", None)):
        _several(f"{name}{suffix}", default, several, doc)


def _written(row: Any, out: Any, result: Tensor, input: Tensor) -> Tensor:
    """`out` with the result, if it has the kind of number that the transform gives."""
    wanted = "complex" if result.is_complex() else "floating point"
    if isinstance(out, Tensor) and not getattr(out, f"is_{wanted.replace(' ', '_')}")():
        name = "fftn" if row.public in ("fft2", "ifft2", "ifftn") else row.public.replace("2", "n")
        raise RuntimeError(f"{name} expects a {wanted} output tensor, but got "
                           f"{out.dtype.scalar_name}")  # fmt: skip
    return write_out(row, out, result, (input,))  # type: ignore[no-any-return]


def _several(name: str, default: Any, transform: Any, doc: str) -> None:
    def fft(input: Tensor, s: Any = None, dim: Any = default, norm: str | None = None, *,
            out: Any = None) -> Any:  # fmt: skip
        result = transform(name, input, s, dim, norm)
        return result if out is None else _written(row, out, result, input)

    fft.__name__ = name
    fft.__doc__ = with_example(
        f"{doc}, over the dims `dim`, cut or filled up to the sizes `s`.",
        f"torch.fft.{name}(torch.ones(2, 3)).shape", f"torch.Size([2, {LENGTHS[name[:-1]]}])",
    )  # fmt: skip
    shown = "[-2, -1]" if default else "None"
    row = composite(f"{name}(Tensor self, int[1]? s=None, int[1]? dim={shown}, str? norm=None)"
                    " -> Tensor", autocast=None if "hfft" in name else "cpu=float32",
                    namespace="fft", method=False)(fft)  # fmt: skip


for _name, (_one, _many, _forward, _doc) in FAMILIES.items():
    _family(_name, _one(_forward), _many(_forward), _doc)


# ---- frequencies and shifts


def _frequencies(name: str, n: int, d: float, numpy_dtype: Any, count: int) -> Array:
    """The first `count` frequencies of n samples d apart; those from (n + 1) // 2 on are negative.

    A half spectrum has no negative ones: its last frequency may be n / 2.
    """
    if numpy_dtype.kind in "biu":
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    places = np.arange(count)
    if name == "fftfreq":
        places[(n + 1) // 2 :] -= n
    working = np.dtype(np.float32) if numpy_dtype in dt.NUMPY_HALVES else numpy_dtype
    with cpu.quiet():
        factor = np.divide(1.0, n * d)
        return (places.astype(working) * np.asarray(factor, working)).astype(numpy_dtype)


def _frequency_row(name: str, doc: str, count: Callable[[int], int]) -> None:
    def frequencies(n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None,
                    layout: Any = None, device: Any = None, pin_memory: bool = False,
                    requires_grad: bool = False) -> Tensor:  # fmt: skip
        if pin_memory is not False:
            refuse_pinned(f"fft_{name}", pin_memory)
        dtype = factories.of_out(f"fft_{name}", out, dtype, layout, device)
        numpy_dtype = factories.options(dtype, layout, device)
        if count(n) < 0:
            raise RuntimeError("Trying to create tensor with negative dimension "
                               f"{count(n)}: [{count(n)}]")  # fmt: skip
        values = _frequencies(name, n, d, numpy_dtype, count(n))
        return factories.finish(values, requires_grad, out)

    frequencies.__name__ = name
    frequencies.__doc__ = doc
    composite(f"{name}(int n, float d=1.0, {factories.OPTIONS}) -> Tensor", namespace="fft",
              method=False, out_writer=f"aten::fft_{name}")(frequencies)  # fmt: skip


_frequency_row("fftfreq", with_example(
    "The n frequencies of `fft` for n samples d apart: shape [n].", "torch.fft.fftfreq(4)",
    "tensor([ 0.0000,  0.2500, -0.5000, -0.2500])"), lambda n: n)  # fmt: skip
_frequency_row("rfftfreq", with_example(
    "The frequencies of `rfft` for n samples d apart: shape [n // 2 + 1].", "torch.fft.rfftfreq(4)",
    "tensor([0.0000, 0.2500, 0.5000])"), lambda n: int(n / 2) + 1)  # fmt: skip


def _shift_row(name: str, doc: str, upwards: bool) -> None:
    def shift(input: Tensor, dim: Any = None) -> Tensor:
        shape = input._data.shape
        if dim is None:
            dims = list(range(len(shape)))
        else:
            dims = [wrap_dim(d, len(shape)) for d in ((dim,) if isinstance(dim, int) else dim)]
        steps = [shape[d] // 2 if upwards else (shape[d] + 1) // 2 for d in dims]
        return ops.roll(input, steps, dims)  # type: ignore[no-any-return]

    shift.__name__ = name
    shift.__doc__ = doc
    composite(f"{name}(Tensor self, int[1]? dim=None) -> Tensor", namespace="fft",
              method=False)(shift)  # fmt: skip


_shift_row("fftshift", with_example(
    "Put the zero frequency in the middle of each dim; the shape stays.",
    "torch.fft.fftshift(torch.arange(4))", "tensor([2, 3, 0, 1])"), True)  # fmt: skip
_shift_row("ifftshift", with_example(
    "Undo `fftshift`; the shape stays.", "torch.fft.ifftshift(torch.tensor([2, 3, 0, 1]))",
    "tensor([0, 1, 2, 3])"), False)  # fmt: skip
