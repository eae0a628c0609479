"""How much work an operator is, in steps of about a microsecond, before it runs.

A limit of steps would mean little if one step could sort ten million numbers. An estimate need not
be right, only in proportion: texts, lists and dictionaries by their length, tensors by their
elements, products, convolutions and factorisations by their multiplications.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import FunctionSchema

Work = Callable[..., int]

ITEMS, ELEMENTS, PRODUCTS = 64, 256, 1 << 15
"""Items of lists and characters, elements of tensors, and multiplications, for one step."""
WALKED = 64
"""What an item counts for that is looked at by itself, in items."""
MOST = 1 << 27
"""So far is counted: lists may hold each other so often that nobody could count to the end."""
ENDLESS = 1 << 62

CONTAINERS = (list, tuple, dict, str)
SIMPLE = (int, float, bool, complex, type(None))


# ---- lists, dictionaries, texts


def extent(values: Iterable[Any], *, with_tensors: bool = True) -> int:
    """Items and characters of values, with all that they hold, as often as they hold it."""
    total, left = 0, list(values)
    while left and total < MOST:
        value = left.pop()
        size, inside = _inside(value)
        total += WALKED + (size if with_tensors or not isinstance(value, Tensor) else 0)
        left += inside
    return ENDLESS if left else total


def _inside(value: Any) -> tuple[int, Iterable[Any]]:
    """The length of one thing, and what it holds that may have a length."""
    if isinstance(value, (list, tuple)):
        is_plain = isinstance(value, list) and (not value or isinstance(value[0], SIMPLE))
        return len(value), () if is_plain else value
    if isinstance(value, dict):
        return len(value), [*value.keys(), *value.values()]
    if isinstance(value, str):
        return len(value), ()
    return (_shape_size(value) if isinstance(value, Tensor) else 0), ()


def reached(value: Any) -> int:
    """The work of looking at all that a value holds, at each list once: a step for each item."""
    total, left, seen = 0, [value], set[int]()
    while left:
        one = left.pop()
        if isinstance(one, (list, tuple, dict)) and id(one) not in seen:
            seen.add(id(one))
            size, inside = _inside(one)
            total += 1 + size
            left += inside
    return total


def _length(*values: Any) -> int:
    return sum(len(value) for value in values if isinstance(value, CONTAINERS)) // ITEMS


def _sorted(*values: Any) -> int:
    items = values[0]
    if not isinstance(items, list):
        return _elements(*values) * SORTING
    is_plain = not items or isinstance(items[0], SIMPLE)
    size = len(items) if is_plain else extent(items)
    return size * max(1, len(items).bit_length()) // ITEMS


QUICK = frozenset((
    "len", "__getitem__", "append", "_set_item", "get", "setdefault", "device", "Delete", "__is__",
    "__isnot__", "unchecked_cast", "unchecked_unwrap_optional", "_unwrap_optional", "TupleIndex",
    "StringIndex", "requires_grad_", "warn", "popitem",
))  # fmt: skip
"""Operators on containers whose time does not depend on their length."""

DEEP = frozenset((
    "eq", "ne", "lt", "le", "gt", "ge", "index", "count", "remove", "__contains__", "str", "format",
    "percentFormat", "Print", "hash", "join",
))  # fmt: skip
"""Operators that look into what containers hold."""


def _looked_into(*values: Any) -> int:
    return extent(values) // ITEMS


def _shown(*values: Any) -> int:
    """Texts of values: every number is several characters."""
    return 8 * _looked_into(*values)


def _has_key(table: Any, key: Any) -> int:
    return len(key) // ITEMS if isinstance(key, str) else 0


def _popped(items: Any, place: Any = -1, *rest: Any) -> int:
    if not isinstance(items, list) or place == -1:
        return 0
    return len(items) // ITEMS


# ---- tensors


def _elements(*values: Any) -> int:
    return sum(_numel(value) for value in values) // ELEMENTS


def _numel(value: Any) -> int:
    if isinstance(value, Tensor):
        return _shape_size(value)
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Tensor):
        return sum(map(_shape_size, value))
    return 0


def _shape_size(tensor: Any) -> int:
    return 0 if tensor is None else tensor.numel()


def _shapes(values: Iterable[Any]) -> list[tuple[int, ...]]:
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(tuple(value.shape))
        elif isinstance(value, (list, tuple)):
            found += _shapes(value)
    return found


def _product(*values: Any) -> int:
    """Matrices that are multiplied, one after the other; with a batch at most every pair."""
    total, (first, *rest) = 0, _shapes(values) or [()]
    for second in rest:
        if len(second) < 2 or len(first) < 2:
            total += max(math.prod(first), math.prod(second))
            first = first if len(first) >= len(second) else second
            continue
        batch = _batch(first, second)
        total += batch * first[-2] * max(first[-1], second[-2]) * second[-1]
        first = (batch, first[-2], second[-1])
    return total // PRODUCTS + _elements(*values)


def _batch(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """How many products two batches give that are stretched to fit each other."""
    size = 1
    for place in range(3, max(len(first), len(second)) + 1):
        sizes = [shape[-place] for shape in (first, second) if len(shape) >= place]
        size *= max(sizes)
    return size


def _linear(input: Any, weight: Any, *rest: Any) -> int:
    return input.numel() * weight.shape[0] // PRODUCTS + _elements(input, weight)


def _pairs(*values: Any) -> int:
    """Every row of the one with every row of the other."""
    tensors: list[Any] = [value for value in values if isinstance(value, Tensor)]
    first, second = tensors[0], tensors[min(1, len(tensors) - 1)]
    return first.numel() * max(1, math.prod(second.shape[-2:-1])) // ELEMENTS


def _einsum(equation: str, tensors: Any, *rest: Any) -> int:
    """As many multiplications as the index runs through, all letters together."""
    sizes: dict[str, int] = {}
    left = equation.partition("->")[0].replace(" ", "").split(",")
    for letters, shape in zip(left, _shapes(tensors), strict=False):
        known = letters.replace("...", "")
        for letter, size in zip(reversed(known), reversed(shape), strict=False):
            sizes[letter] = max(size, sizes.get(letter, 0))
        if "..." in letters:
            sizes["..."] = max(math.prod(shape[: len(shape) - len(known)]), sizes.get("...", 0))
    return math.prod(sizes.values()) // PRODUCTS + _elements(tensors)


def _factored(*values: Any) -> int:
    """Factorisations, inverses, solutions: a small multiple of a product of matrices."""
    total = 0
    for shape in _shapes(values):
        total += math.prod(shape) * max(shape[-2:], default=1)
    return total * FACTORING // PRODUCTS


def _powered(matrix: Any, power: Any, *rest: Any) -> int:
    times = 2 * abs(power).bit_length() if isinstance(power, int) else 1
    return times * _product(matrix, matrix)


def _convolved(input: Any, weight: Any, *rest: Any) -> int:
    """Every weight for every position; padding makes more of them, strides are left out."""
    places = weight.dim() - 2
    sizes = input.shape[-places:] if places > 0 else ()
    pads = rest[2] if len(rest) > 2 and isinstance(rest[2], (list, tuple)) else [0] * len(sizes)
    positions = 1
    for place, size in enumerate(sizes):
        positions *= size + 2 * abs(pads[min(place, len(pads) - 1)] if pads else 0)
    batch = input.shape[0] if input.dim() == weight.dim() else 1
    return batch * positions * weight.numel() // PRODUCTS + _elements(input, weight)


def _pooled(input: Any, *rest: Any) -> int:
    """Every element for every place of the window, which comes first of the lists."""
    window = next((value for value in rest if isinstance(value, (list, tuple)) and value), ())
    return input.numel() * math.prod(size for size in window if isinstance(size, int)) // ELEMENTS


def _recurrent(*values: Any) -> int:
    """Every weight for every row of the input."""
    shapes = _shapes(values)
    rows = math.prod(shapes[0][:-1]) if shapes else 1
    return rows * _numel_of(shapes[1:]) // PRODUCTS + _elements(*values)


def _numel_of(shapes: Iterable[tuple[int, ...]]) -> int:
    return sum(math.prod(shape) for shape in shapes)


def _attended(query: Any, key: Any, value: Any, *rest: Any) -> int:
    return 2 * query.numel() * key.shape[-2] // PRODUCTS + _elements(query, key, value, *rest)


def listed(tensor: Any, *rest: Any) -> int:
    """Every element becomes a number of a list, whose type is looked at."""
    return _numel(tensor)


def _chosen(input: Any, r: Any = 2, with_replacement: Any = False, *rest: Any) -> int:
    """A row for each choice of so many elements."""
    size = input.numel()
    rows = math.comb(size + r - 1 if with_replacement and size else size, max(r, 0))
    return rows * max(r, 1) // CHOICES


def _slow(*values: Any) -> int:
    return SORTING * _elements(*values)


def _reduced(*values: Any) -> int:
    return REDUCING * _elements(*values)


def _rejected(*values: Any) -> int:
    """Numbers of distributions that draw until one fits."""
    return REJECTING * _elements(*values)


def _read(*values: Any) -> int:
    """Every number of nested lists becomes an element, whose type is looked at."""
    return extent(values) // NUMBERS_READ


def backward(*values: Any) -> int:
    """A backward pass: who counts knows what there was to go back through."""
    return _elements(*values)


REDUCING, SORTING, FACTORING, REJECTING = 4, 32, 32, 512
"""How many times more than one operation an element of these takes."""
NUMBERS_READ = 4
"""Numbers of lists for one step, where a tensor is made of them."""
CHOICES = 8
"""Elements of rows of choices for one step."""

FAMILIES: dict[Work, str] = {
    _product: "matmul mm bmm mv addmm addmm_ addmv addmv_ addbmm addbmm_ baddbmm baddbmm_ "
    "chain_matmul linalg_multi_dot linalg_matmul inner tensordot bilinear kron outer ger cov "
    "corrcoef dot vdot linalg_vecdot",
    _linear: "linear",
    _einsum: "einsum",
    _pairs: "cdist _cdist_forward pdist _pdist_forward isin",
    _powered: "matrix_power linalg_matrix_power",
    _convolved: "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc "
    "convolution _convolution _convolution_mode",
    _pooled: "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d im2col "
    "max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices",
    _recurrent: "lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell "
    "_transformer_encoder_layer_fwd _native_multi_head_attention",
    _attended: "scaled_dot_product_attention",
    _slow: "argsort msort topk kthvalue median nanmedian mode quantile nanquantile unique_dim "
    "unique_consecutive _unique _unique2 multinomial bucketize searchsorted randperm lgamma "
    "digamma polygamma mvlgamma igamma igammac special_zeta histogramdd ctc_loss _ctc_loss "
    "renorm embedding_renorm_ fft_fft fft_fft2 fft_fftn fft_ifft fft_ifft2 "
    "fft_ifftn fft_rfft fft_rfft2 fft_rfftn fft_irfft fft_irfft2 fft_irfftn fft_hfft fft_ihfft "
    "fft_hfft2 fft_hfftn fft_ihfft2 fft_ihfftn _fft_c2c _fft_c2r _fft_r2c stft istft",
    _reduced: "max min argmax argmin amax amin aminmax any all prod std var std_mean var_mean norm "
    "linalg_vector_norm frobenius_norm count_nonzero logsumexp cummax cummin cumprod logcumsumexp",
    _rejected: "poisson binomial _standard_gamma _sample_dirichlet",
    _read: "tensor as_tensor",
    _factored: "svd qr cholesky cholesky_inverse cholesky_solve det logdet slogdet inverse "
    "pinverse lu_solve lu_unpack _lu_with_info geqrf orgqr ormqr triangular_solve matrix_exp "
    "nuclear_norm linalg_svd linalg_svdvals linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh "
    "linalg_qr linalg_cholesky linalg_cholesky_ex linalg_det linalg_slogdet linalg_inv "
    "linalg_inv_ex linalg_pinv linalg_solve linalg_solve_ex linalg_solve_triangular linalg_lstsq "
    "linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_ldl_factor "
    "linalg_ldl_factor_ex linalg_ldl_solve linalg_matrix_exp linalg_matrix_rank linalg_cond "
    "linalg_matrix_norm linalg_norm linalg_householder_product linalg_tensorinv "
    "linalg_tensorsolve",
    listed: "tolist _tensor_to_list",
    _chosen: "combinations",
    _popped: "pop",
    backward: "backward grad",
    _sorted: "sort sorted",
    _shown: "str",
}
BY_NAME: dict[str, Work] = {
    name: work for work, names in FAMILIES.items() for name in names.split()
}
"""The operators that take more than their arguments are long."""


def work_of(schema: FunctionSchema) -> Work | None:
    """The estimate for an operator; None for one that is a step, whatever it is given."""
    name = schema.name.rpartition("::")[2]
    inputs = [argument.type for argument in schema.arguments]
    if schema.vararg:
        return _shown
    if name in BY_NAME:
        return BY_NAME[name]
    if any(map(_is_tensors, inputs)):
        return _work_on_tensors(name, schema)
    if name in QUICK or not any(map(_has_length, inputs)):
        return None
    if name == "__contains__" and isinstance(inputs[0], T.DictType):
        return _has_key
    return _looked_into if name in DEEP else _length


def _work_on_tensors(name: str, schema: FunctionSchema) -> Work | None:
    """By elements; views and questions about a tensor do not look at them."""
    is_view = any(result.alias and "!" not in result.alias for result in schema.returns)
    is_answer = not any(_is_tensors(result.type) for result in schema.returns)
    looks = ("equal", "allclose", "str", "format", "Print", "is_nonzero", "index", "remove", "eq",
             "ne", "count", "__contains__", "hash")  # fmt: skip
    if is_view or is_answer and name not in looks:
        return None
    return _elements if not is_answer else _looked_into


def _is_tensors(type: Any) -> bool:
    if isinstance(type, T.OptionalType):
        return _is_tensors(type.inner)
    return _is_tensors(type.element) if isinstance(type, T.ListType) else bool(type == T.TENSOR)


def _has_length(type: Any) -> bool:
    if isinstance(type, T.OptionalType):
        return _has_length(type.inner)
    return type not in NUMBERS


NUMBERS = frozenset((T.INT, T.FLOAT, T.COMPLEX, T.BOOL, T.NONE))
