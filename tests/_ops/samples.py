"""Arguments for every row that has a gradient: which rows, and what to call them with.

A new row needs its name in one of these lines, or a line of its own. `R(2, 3)` is a real float64
tensor of that shape, `P` positive, `U` between 0 and 1, `C` complex, `N(...)` without gradient,
`I([...])` and `B([...])` are indices and masks. Each line holds calls as lists of arguments.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._ops.table.op import Op
from tests._ops.sample_values import B, C, I, N, P, R, Sample, U, call

PLANE = [[1.0, 5.0, 2.0, 0.0], [3.0, 4.0, 8.0, 6.0], [7.0, 0.5, 1.5, 9.0]]
MAXIMA = [[5.0, 8.0, 8.0], [7.0, 8.0, 9.0]]
PIVOTS = I(np.array([2, 2], np.int32))


def lower(matrix: Any) -> Any:
    """For rows that read a triangle only."""
    return matrix.tril()


def upper(matrix: Any) -> Any:
    """For rows that read the other triangle only."""
    return matrix.triu()


def symmetric(matrix: Any) -> Any:
    """Equal to its adjoint."""
    return matrix + matrix.mH


def with_pairs(matrix: Any, *_: Any) -> Any:
    """A symmetric matrix, its largest eigenvalue and the vector to it."""
    matrix = symmetric(matrix)
    values, vectors = torch.linalg.eigh(matrix.detach())
    return matrix, values[..., -1:], vectors[..., -1:]


def with_casts(*operands: Any) -> Any:
    """The first half of them, twice: what operands are cast to is what they are."""
    return operands[: len(operands) // 2] * 2


def definite(matrix: Any) -> Any:
    """Equal to its adjoint, with positive eigenvalues."""
    return matrix @ matrix.mH + torch.eye(matrix.shape[-1], dtype=matrix.dtype)


def moduli(results: Any) -> Any:
    """Eigenvectors and singular vectors are only known up to a phase."""
    return tuple(result.abs() for result in results)


LINES: list[tuple[str, list[Any]]] = [
    # ---- pointwise, one tensor
    ("""_conj_physical _gelu _gelu_tanh _gelu_tanh_slope _log_sigmoid_slope _mish_slope
     _sigmoid_slope _silu_slope _softplus_slope abs angle asinh atan ceil cos cosh deg2rad elu
     erf erfc exp exp2 expm1 floor frac hardshrink hardsigmoid hardswish hardtanh i0 leaky_relu mish
     neg nn.functional.log_sigmoid nn.functional.softplus rad2deg relu round sgn sigmoid sign silu
     sin sinc sinh softshrink special.special_erfcx special.special_i0e special.special_i1
     special.special_i1e special.special_log_ndtr special.special_ndtr square tanh trunc _tanh_slope
     nan_to_num""",
     [[R(2, 3)], [R()]]),
    ("""digamma lgamma log log10 log1p log2 reciprocal rsqrt special.special_entr sqrt""",
     [[P(2, 3)], [P()]]),
    ("_logit acos asin atanh erfinv special.special_ndtri tan", [[U(2, 3)]]),
    ("acosh", [[R(2, 3, low=1.2, high=3)]]),
    ("_logit_eps", [[U(2, 3), 0.2]]),
    ("_celu", [[R(2, 3), 1.5, 1 / 1.5]]),
    ("_rrelu_even", [[R(2, 3), 0.2]]),
    ("elu", [[R(2, 3), 0.7, 1.2, 0.9]]),
    ("hardtanh _clamp_both", [[R(2, 3), -0.5, 0.7]]),
    ("hardshrink softshrink leaky_relu", [[R(2, 3), 0.7]]),
    ("nn.functional.softplus", [[R(2, 3), 2.0, 1.5]]),
    ("threshold", [[R(2, 3), 0.1, 20.0]]),
    ("_clamp_high _clamp_low clamp_max clamp_min", [[R(2, 3), 0.5]]),
    ("_polygamma", [[P(2, 3), 1], [P(2), 2]]),
    ("mvlgamma", [[R(2, 3, low=2.1, high=4), 3]]),
    ("round.decimals", [call(R(2, 3), decimals=1)]),
    ("nan_to_num", [[R(2, 3), 0.5, 1.0, 2.0]]),
    ("pow.Tensor_Scalar", [[P(2, 3), 2.5], [R(2, 3), 3], [R(2), 0], [R(2), 2]]),
    ("pow.Scalar", [[2.5, R(2, 3)]]),
    ("frexp.Tensor", [[R(2, 3)]]),
    # ---- pointwise, several tensors: broadcast each way
    ("""add.Tensor sub.Tensor rsub.Tensor mul.Tensor maximum minimum fmax fmin _clamp_high_tensor
     _clamp_low_tensor clamp_max.Tensor clamp_min.Tensor atan2 hypot logaddexp logaddexp2
     copysign.Tensor""",
     [[R(2, 3), R(2, 3)], [R(2, 1), R(3)], [R(), R(2)]]),
    ("add.Tensor sub.Tensor rsub.Tensor mul.Tensor", [[R(2, 3), 2.5]]),
    ("add.Tensor sub.Tensor", [call(R(2, 3), R(3), alpha=2.5)]),
    ("div.Tensor _div_floor _div_trunc fmod.Tensor remainder.Tensor",
     [[R(2, 3), P(2, 3)], [R(2, 1), P(3)]]),
    ("_prelu_kernel", [[R(2, 3), R(2, 3)], [R(2, 3), R(1, 3)]]),
    ("_stepped _beside", [[R(2, 3), R(2, 3)], [R(2, 3), R(1, 3)]]),
    ("_binary_cross_entropy_slope", [[U(2, 3), U(2, 3)]]),
    ("_relu_grad", [[R(2, 3), N(R(2, 3))]]),
    ("_gelu_grad", [[R(2, 3), R(2, 3)]]),
    ("_threshold_grad", [[R(2, 3), R(2, 3), 0.25]]),
    ("pow.Tensor_Tensor", [[P(2, 3), R(2, 3)], [P(2, 1), R(3)]]),
    ("igamma igammac", [[N(P(2, 3)), P(2, 3)]]),
    ("special.special_zeta", [[N(R(2, 3, low=1.5, high=3)), P(2, 3)]]),
    ("xlogy.Tensor", [[R(2, 3), P(2, 3)], [R(3), P(2, 1)]]),
    ("special.special_xlog1py", [[R(2, 3), U(2, 3)]]),
    ("ldexp.Tensor", [[R(2, 3), R(3)], [R(2, 3), I([1, -2, 0])]]),
    ("_complex", [[R(2, 3), R(2, 3)]]),
    ("_polar", [[P(2, 3), R(2, 3)]]),
    ("_clamp_both_tensors", [[R(2, 3), R(2, 3, low=-1, high=0), R(3, low=0.1, high=1)]]),
    ("_where", [[B([True, False, True]), R(2, 3), R(3)]]),
    ("_kept_scaled", [[R(2, 3), R(2, 3), 1.5]]),
    ("addcmul", [call(R(2, 3), R(3), R(2, 1), value=1.5)]),
    ("addcdiv", [call(R(2, 3), R(3), P(2, 1), value=1.5)]),
    ("lerp.Scalar", [[R(2, 3), R(3), 0.3], [R(2, 3), R(3), 0.8]]),
    ("lerp.Tensor", [[R(2, 3), R(3), U(2, 1)]]),
    ("_copied", [[R(2, 3), R(2, 3)]]),
    ("nextafter", [[R(2, 3), R(3)]]),
    ("fill.Scalar", [[R(2, 3), 1.5]]),
    ("fill.Tensor", [[R(2, 3), R()]]),
    ("clone zero _to_copy alias _as_entries", [[R(2, 3)], [R()]]),
    # ---- reductions
    ("""sum.dim_IntList mean.dim nansum prod.dim_int""",
     [[R(2, 3)], [R(2, 3), 1], [R(2, 3), -2, True], [R()]]),
    ("amax amin", [[R(2, 3)], [R(2, 3), [1]], [R(2, 3), [-2], True], [R(2, 3), [0, 1]]]),
    ("sum.dim_IntList mean.dim nansum", [[R(2, 3, 2), [0, 2]], [R(2, 3, 2), [0, 2], True]]),
    ("logsumexp", [[R(2, 3), [1]], [R(2, 3), [0, 1], True], [R(), [0]]]),
    ("_var _std _var_mean _std_mean",
     [[R(2, 3)], [R(2, 3), [1]], [R(2, 3), [1], 0, True], [R(2, 3), [0, 1], 0.5]]),
    ("max min median nanmedian", [[R(2, 3)], [R()]]),
    ("aminmax", [[R(2, 3)], call(R(2, 3), dim=1, keepdim=True)]),
    ("max.dim min.dim median.dim nanmedian.dim mode", [[R(2, 3), 1], [R(2, 3), 0, True]]),
    ("cummax cummin cumsum cumprod logcumsumexp", [[R(2, 3), 1], [R(3, 2), 0]]),
    ("kthvalue", [[R(2, 3), 2], [R(2, 3), 1, 0, True]]),
    ("sort.stable", [[R(2, 3)], [R(2, 3), 0, True]]),
    ("topk", [[R(2, 4), 2], [R(3, 2), 2, 0, False]]),
    ("_times_number _over_number _plus_number _minus_number", [[R(2, 3), 2.5], [R(), -3]]),
    ("_norm", [[R(2, 3), 2], [R(2, 3), 3, [1]], [R(2, 3), 1, [0], True]]),
    ("linalg.vector_norm",
     [[R(2, 3)], [R(2, 3), 3, [1]], [R(2, 3), 1, [0], True], [R(2, 3), float("inf"), [1]]]),
    ("dist", [[R(2, 3), R(3)], [R(2, 3), R(2, 3), 3], [R(2), R(2), 1]]),
    ("renorm", [[R(2, 3), 2, 0, 1.0], [R(2, 3), 1, 1, 2.0]]),
    ("softmax.int log_softmax.int _safe_softmax", [[R(2, 3), 1], [R(2, 3), 0]]),
    ("_softmax_backward_data", [[R(2, 3), U(2, 3), 1, torch.float64]]),
    ("_log_softmax_backward_data",
     [[R(2, 3), R(2, 3, low=-2, high=-0.1), 1, torch.float64]]),
    ("trace", [[R(2, 3)]]),
    # ---- views, splits, joins
    ("squeeze", [[R(2, 1, 3)]]),
    ("squeeze.dim", [[R(2, 1, 3), 1], [R(2, 3), 0]]),
    ("squeeze.dims", [[R(1, 2, 1), [0, 2]]]),
    ("unsqueeze", [[R(2, 3), 1], [R(), 0]]),
    ("t _real _imag _view_as_real _conj _neg_view", [[C(2, 3)]]),
    ("t", [[R(2, 3)], [R(3)]]),
    ("view_as_complex", [[R(3, 2)]]),
    ("transpose.int", [[R(2, 3, 2), 0, 2]]),
    ("permute", [[R(2, 3, 2), [2, 0, 1]]]),
    ("expand", [[R(2, 1), [3, 2, 3]]]),
    ("view _unsafe_view", [[R(2, 3), [3, 2]], [R(2, 3), [-1]]]),
    ("select.int", [[R(2, 3), 1, -1]]),
    ("slice.Tensor", [[R(4, 2), 0, 1, 4, 2]]),
    ("diagonal", [[R(3, 3)], [R(2, 3, 3), 1, 1, 2]]),
    ("_diagonal_copied", [[R(3, 3), 1]]),
    ("unfold", [[R(5), 0, 3, 2], [R(2, 4), 1, 2, 1]]),
    ("_as_strided", [[R(6), [2, 3], [1, 2], 0], [R(2, 3), [2, 2], [1, 1], 1]]),
    ("split.Tensor unsafe_split.Tensor", [[R(5, 2), 2], [R(2, 3), 1, 1]]),
    ("split_with_sizes unsafe_split_with_sizes", [[R(5, 2), [1, 4]]]),
    ("unbind.int", [[R(2, 3), 1]]),
    ("cat", [[[R(2, 3), R(1, 3)], 0], [[R(2, 2), R(2, 1)], 1]]),
    ("stack", [[[R(2, 3), R(2, 3)], 1]]),
    ("block_diag", [[[R(2, 3), R(2), R()]]]),
    ("diagonal_backward", [[R(2), [3, 2], 0, 0, 1]]),
    ("diagonal_scatter", [[R(3, 3), R(2), 1]]),
    ("select_backward", [[R(2), [2, 3], 1, 1]]),
    ("select_scatter", [[R(2, 3), R(2), 1, 1]]),
    ("slice_backward", [[R(2, 2), [4, 2], 0, 1, 4, 2]]),
    ("_as_strided_scatter", [[R(3, 3), R(2, 2), [2, 2], [1, 2], 1]]),
    ("slice_scatter", [[R(4, 2), R(2, 2), 0, 1, 4, 2]]),
    ("unfold_backward", [[R(2, 3), [5], 0, 3, 2]]),
    ("channel_shuffle", [[R(1, 4, 2), 2]]),
    ("diag_embed", [[R(2, 2)], [R(2, 2), 1, 0, 2]]),
    ("flip", [[R(2, 3), [0, 1]]]),
    ("pixel_shuffle", [[R(1, 4, 1, 2), 2]]),
    ("pixel_unshuffle", [[R(1, 1, 2, 4), 2]]),
    ("repeat", [[R(2, 2), [2, 1, 2]]]),
    ("roll", [[R(2, 3), [1]], [R(2, 3), [1, -1], [0, 1]]]),
    ("rot90", [[R(2, 3)], [R(2, 3), 2, [0, 1]]]),
    ("tril triu", [[R(3, 3)], [R(2, 3), 1]]),
    # ---- indexing
    ("index.Tensor", [[R(3, 2), [I([0, 2, 0])]], [R(3, 2), [None, I([1, 1])]],
                      [R(3, 2), [I([[0], [2]]), I([0, 1])]]]),
    ("_index_backward", [[R(3, 2), [3, 2], [I([0, 2, 0])]]]),
    ("index_put", [[R(3, 2), [I([0, 2])], R(2, 2)], [R(3, 2), [I([0, 0])], R(2), True]]),
    ("gather", [[R(2, 3), 1, I([[0, 0], [2, 1]])]]),
    ("index_select", [[R(2, 3), 1, I([0, 0, 2])]]),
    ("masked_select", [[R(2, 3), B([[True, False, True], [False, True, True]])]]),
    ("take", [[R(2, 3), I([0, 5, 0])]]),
    ("index_add index_copy", [[R(3, 2), 0, I([2, 0]), R(2, 2)]]),
    ("index_add", [call(R(3, 2), 0, I([0, 0]), R(2, 2), alpha=2.5)]),
    ("index_fill.int_Scalar", [[R(3, 2), 0, I([2, 0]), 1.5]]),
    ("index_fill.int_Tensor", [[R(3, 2), 0, I([2, 0]), R()]]),
    ("index_reduce", [[R(3, 2), 0, I([2, 0, 0]), R(3, 2), kind]
                      for kind in ("prod", "mean", "amax", "amin")]
     + [call(R(3, 2), 0, I([2, 0, 0]), R(3, 2), "mean", include_self=False)]),
    ("masked_fill.Scalar", [[R(2, 3), B([True, False, True]), 1.5]]),
    ("masked_fill.Tensor", [[R(2, 3), B([True, False, True]), R()]]),
    ("masked_scatter", [[R(2, 3), B([True, False, True]), R(5)]]),
    ("put", [[R(2, 3), I([0, 5]), R(2)], [R(2, 3), I([0, 0]), R(2), True]]),
    ("scatter.src scatter_add", [[R(2, 3), 1, I([[0, 2], [1, 0]]), R(2, 3)]]),
    ("scatter.value", [[R(2, 3), 1, I([[0, 2], [1, 0]]), 1.5]]),
    ("scatter_reduce.two", [[R(2, 3), 1, I([[0, 0], [1, 0]]), R(2, 2), kind]
                            for kind in ("sum", "prod", "mean", "amax", "amin")]
     + [call(R(2, 3), 1, I([[0, 0], [1, 0]]), R(2, 2), "mean", include_self=False)]),
    ("segment_reduce", [call(R(6, 2), kind, lengths=torch.tensor([3, 1, 2]), initial=start)
                        for kind in ("sum", "mean", "prod", "max", "min")
                        for start in (None, 0.1)]
     + [call(R(2, 5), "prod", offsets=torch.tensor([[0, 2, 4], [1, 1, 5]]), axis=1,
             unsafe=True)]),
    # ---- products
    ("mm _matmul _matmul_as_mv", [[R(2, 3), R(3, 2)]]),
    ("bmm", [[R(2, 2, 3), R(2, 3, 1)]]),
    ("_adjoint_times", [[R(3, 2), R(3, 2)]]),
    ("_times_adjoint", [[R(2, 3), R(2, 3)]]),
    ("_vector_times _transposed_mv", [[R(3), R(3, 2)]]),
    ("dot vdot _matmul_dot", [[R(3), R(3)]]),
    ("mv _matmul_mv _times_row", [[R(2, 3), R(3)]]),
    ("outer _matmul_outer", [[R(2), R(3)]]),
    ("addmm", [call(R(2), R(2, 3), R(3, 2), beta=0.5, alpha=1.5), [R(2, 2), R(2, 3), R(3, 2)]]),
    ("addmv", [call(R(2), R(2, 3), R(3), beta=0.5, alpha=1.5)]),
    ("addr", [call(R(2, 3), R(2), R(3), beta=0.5, alpha=1.5)]),
    ("addbmm", [call(R(2, 2), R(2, 2, 3), R(2, 3, 2), beta=0.5, alpha=1.5)]),
    ("baddbmm", [call(R(2, 2), R(2, 2, 3), R(2, 3, 2), beta=0.5, alpha=1.5)]),
    ("_linear", [[R(2, 3), R(2, 3), R(2)]]),
    ("_linear_nd", [[R(2, 2, 3), R(2, 3), R(2)]]),
    ("_linear_of_halves", [call(*[R(2, 3), R(2, 3), R(2)] * 2, before=with_casts)]),
    ("_linear_of_halves_nd", [call(*[R(2, 2, 3), R(2, 3), R(2)] * 2, before=with_casts)]),
    ("_linear_of_halves_no_bias", [call(*[R(2, 3), R(2, 3), None] * 2, before=with_casts)]),
    ("_linear_of_halves_nd_no_bias", [call(*[R(2, 2, 3), R(2, 3), None] * 2, before=with_casts)]),
    ("_linear_no_bias", [[R(2, 3), R(2, 3)]]),
    ("_linear_nd_no_bias", [[R(2, 2, 3), R(2, 3)]]),
    ("linear_backward", [[R(2, 3), R(2, 2), R(2, 3), [True, True, True]]]),
    ("linalg.linalg_cross", [[R(2, 3), R(2, 3)]]),
    ("linalg.linalg_matrix_exp", [[R(2, 2)]]),
    # ---- linear algebra
    ("cholesky_inverse", [call(P(2, 2), before=lower), call(P(2, 2), True, before=upper)]),
    ("cholesky_solve", [call(R(2, 2), P(2, 2), before=lambda b, a: (b, a.tril()))]),
    ("linalg.linalg_cholesky_ex", [call(R(2, 2), before=definite),
                                   call(R(2, 2), before=definite, upper=True)]),
    ("linalg.linalg_eigh", [call(R(2, 2), before=symmetric, after=moduli)]),
    ("_lobpcg_pairs", [call(R(3, 3), R(1), R(3, 1), before=with_pairs, after=moduli)]),
    ("_linalg_eigvalsh", [call(R(2, 2), "L", before=symmetric)]),
    ("linalg.linalg_eig", [call(R(3, 3), after=moduli)]),
    ("_linalg_eigvals _linalg_svdvals linalg.linalg_lu linalg.linalg_lu_factor_ex", [[R(3, 3)]]),
    ("linalg.linalg_svd", [call(R(3, 2), False, after=moduli), call(R(2, 3), False, after=moduli)]),
    ("linalg.linalg_qr", [[R(3, 2)], [R(2, 3)], [R(2, 2)]]),
    ("_lu_solve", [[R(2, 2), PIVOTS, R(2, 3), left, conjugate]
                   for left in (True, False) for conjugate in (True, False)]),
    ("lu_unpack", [[R(2, 2), PIVOTS]]),
    ("linalg.linalg_householder_product", [[R(3, 2), R(2)]]),
    ("ormqr", [[R(3, 2), R(2), R(3, 2)], [R(3, 2), R(2), R(2, 3), False, True]]),
    ("_linalg_lstsq", [call(R(3, 2), R(3, 2), None, "gelsy", after=lambda r: r[0])]),
    ("_linalg_pinv", [[R(3, 2), None, None, False]]),
    ("linalg.linalg_det linalg.linalg_inv_ex linalg.linalg_slogdet", [[R(3, 3)], [R(2, 2, 2)]]),
    ("linalg.linalg_solve_ex", [[R(2, 2), R(2, 3)], call(R(2, 2), R(3, 2), left=False)]),
    ("linalg.linalg_solve_triangular",
     [call(R(2, 2), R(2, 3), upper=True), call(R(2, 2), R(3, 2), upper=False, left=False)]),
    ("triangular_solve", [[R(2, 3), R(2, 2)], [R(2, 3), R(2, 2), False, True],
                          [R(2, 1), R(3, 2, 2), True, False, True]]),
    # ---- networks
    ("glu", [[R(2, 4)], [R(4, 2), 0]]),
    ("rrelu_with_noise", [[R(2, 3), N(U(2, 3))]]),
    ("native_dropout", [[R(2, 3), 0.4, True], [R(2, 3), 0.4, False]]),
    ("embedding", [[R(4, 2), I([[0, 3], [3, 1]])], [R(4, 2), I([0, 3, 3]), 2]]),
    ("embedding_dense_backward", [[R(3, 2), I([0, 3, 3]), 4, -1, False]]),
    ("_embedding_bag", [[R(4, 2), I([0, 3, 3, 1]), I([0, 2])],
                        [R(4, 2), I([0, 3, 3, 1]), I([0, 2]), False, 1],
                        [R(4, 2), I([0, 3, 3, 1]), I([0, 2]), False, 2],
                        [R(4, 2), I([0, 3, 3, 1]), I([0, 2]), False, 0, False, R(4)]]),
    ("native_batch_norm", [[R(3, 2), P(2), R(2), None, None, True, 0.1, 1e-5],
                           [R(2, 2, 2), P(2), R(2), N(R(2)), N(P(2)), False, 0.1, 1e-5]]),
    ("native_group_norm", [[R(2, 4, 2), P(4), R(4), 2, 4, 2, 2, 1e-5]]),
    ("native_layer_norm", [[R(2, 3), [3], P(3), R(3), 1e-5]]),
    ("_rms_norm", [[R(2, 3), [3], P(3), 1e-5], [R(2, 2, 3), [2, 3], None, None]]),
    ("convolution",
     [[R(1, 2, 4), R(2, 2, 2), R(2), [1], [1], [1], False, [0], 1],
      [R(1, 2, 3, 3), R(2, 1, 2, 2), R(2), [1, 2], [1, 0], [1, 1], False, [0, 0], 2],
      [R(1, 2, 2, 2), R(2, 1, 2, 2), None, [2, 2], [0, 0], [1, 1], True, [1, 1], 1]]),
    ("_conv_bias_grad", [[R(2, 2, 3)]]),
    ("_conv_input_grad",
     [[R(1, 2, 3), R(2, 2, 2), [1, 2, 4], [1], [0], [1], False, [0], 1]]),
    ("_conv_weight_grad",
     [[R(1, 2, 3), R(1, 2, 4), [2, 2, 2], [1], [0], [1], False, [0], 1]]),
    ("_attention", [[R(1, 1, 2, 2), R(1, 1, 3, 2), R(1, 1, 3, 2), None, False, 0.7],
                    [R(1, 2, 3, 1), R(1, 2, 3, 1), R(1, 2, 3, 2), None, True, 1.0],
                    [R(1, 1, 2, 2), R(1, 1, 2, 2), R(1, 1, 2, 1), N(R(2, 2)), False, 0.7]]),
    ("_lstm_layer", [[R(3, 2, 8), R(8, 2), R(2, 2), R(2, 2), False],
                     [R(2, 1, 12), R(12, 3), R(1, 3), R(1, 3), True]]),
    ("_gru_layer", [[R(3, 2, 6), R(6, 2), R(6), R(2, 2), False],
                    [R(2, 1, 9), R(9, 3), None, R(1, 3), True]]),
    ("_rnn_layer", [[R(3, 2, 2), R(2, 2), R(2, 2), False, False],
                    [R(2, 1, 3), R(3, 3), R(1, 3), True, True]]),
    # ---- losses
    ("huber_loss smooth_l1_loss mse_loss",
     [[R(2, 3), R(2, 3)], [R(2, 3), R(2, 3), 0], [R(2, 3), R(2, 3), 2]]),
    ("mse_loss_backward", [[R(), R(2, 3), R(2, 3), 1], [R(2, 3), R(2, 3), R(2, 3), 0]]),
    ("binary_cross_entropy", [[U(2, 3), U(2, 3)], [U(2, 3), U(2, 3), N(P(3)), 0]]),
    ("binary_cross_entropy_with_logits",
     [[R(2, 3), U(2, 3)], [R(2, 3), U(2, 3), N(P(3)), N(P(3)), 2]]),
    ("soft_margin_loss", [[R(2, 3), N(R(2, 3))], [R(2, 3), N(R(2, 3)), 0]]),
    ("_cross_entropy", [[R(2, 3), I([0, 2]), None, 1, -100],
                        [R(2, 3), I([0, -100]), N(P(3)), 0, -100]]),
    ("_cross_entropy_of_halves", [[R(2, 3), I([0, 2]), 1, -100], [R(2, 3), I([0, -100]), 0, -100]]),
    ("_cross_entropy2d", [[R(1, 2, 2, 1), I([[[0], [1]]]), N(P(2)), 1, -100]]),
    ("nll_loss", [[R(2, 3), I([0, 2])], [R(2, 3), I([0, 2]), N(P(3)), 0, 2]]),
    ("nll_loss2d", [[R(1, 2, 2, 1), I([[[0], [1]]])]]),
    ("nll_loss_backward", [[R(), I([0, 2]), N(P(3)), [2, 3], 1, -100]]),
    ("multi_margin_loss", [[R(2, 3), I([0, 2])], [R(2, 3), I([0, 2]), 2, 0.5, N(P(3)), 0]]),
    ("multilabel_margin_loss", [[R(2, 3), I([[0, 2, -1], [1, -1, -1]])]]),
    ("_ctc_loss", [call(R(4, 1, 3), I([[1, 2]]), [4], [2], before=lambda x: x.log_softmax(2))]),
    ("_cdist_forward", [[R(2, 3), R(3, 3), 2.0, None], [R(2, 3), R(2, 3), 1.0, None],
                        [R(2, 3), R(2, 3), 3.0, None], [R(2, 3), R(2, 3), float("inf"), None]]),
    ("_pdist_forward", [[R(3, 2)], [R(3, 2), 1.0], [R(3, 2), 3.0]]),
    # ---- Fourier transforms
    ("_fft_c2c", [[C(2, 3), [1], 0, True], [C(2, 3), [0, 1], 1, False]]),
    ("_fft_r2c", [[R(2, 4), [1], 0, True], [R(2, 3), [0, 1], 1, True], [R(3), [0], 2, False]]),
    ("_fft_c2r", [[C(2, 3), [1], 2, 4], [C(2, 2), [0, 1], 1, 3]]),
    ("_resize_ends", [[R(2, 3), [3, 2]]]),
    # ---- padding
    ("constant_pad_nd", [[R(2, 3), [1, 2], 0.5], [R(2, 3), [-1, 1, 1, 0]]]),
    ("reflection_pad1d replication_pad1d", [[R(1, 3), [2, 1]]]),
    ("reflection_pad2d replication_pad2d", [[R(1, 3, 2), [1, 1, 2, 1]]]),
    ("reflection_pad3d replication_pad3d", [[R(1, 2, 2, 2), [1, 1, 1, 0, 0, 1]]]),
    ("reflection_pad1d_backward replication_pad1d_backward", [[R(1, 6), [1, 3], [2, 1]]]),
    ("reflection_pad2d_backward replication_pad2d_backward",
     [[R(1, 4, 3), [1, 3, 2], [1, 0, 0, 1]]]),
    ("reflection_pad3d_backward replication_pad3d_backward",
     [[R(1, 2, 2, 3), [1, 2, 2, 2], [1, 0, 0, 0, 0, 0]]]),
    # ---- pooling
    ("avg_pool2d max_pool2d max_pool2d_with_indices",
     [[R(1, 3, 4), [2, 2]], [R(1, 1, 4, 4), [3, 2], [2, 1], [1, 1]]]),
    ("avg_pool3d max_pool3d max_pool3d_with_indices",
     [[R(1, 2, 3, 2), [2, 2, 2]], [R(1, 2, 3, 2), [2, 2, 1], [1, 1, 1], [1, 0, 0]]]),
    ("_max_pool2d_backward", [[R(1, 2, 3), B([PLANE]), B([MAXIMA]), [2, 2], [1, 1]]]),
    ("_max_pool2d_pick", [[R(1, 3, 4), B([PLANE]), [2, 2], [1, 1]]]),
    ("_max_pool3d_backward",
     [[R(1, 1, 2, 3), B([[PLANE]]), B([[MAXIMA]]), [1, 2, 2], [1, 1, 1]]]),
    ("_max_pool3d_pick", [[R(1, 1, 3, 4), B([[PLANE]]), [1, 2, 2], [1, 1, 1]]]),
    ("avg_pool2d", [[R(1, 3, 4), [2, 2], [1, 2], [1, 1], True, False],
                    [R(1, 3, 4), [2, 2], [1, 2], [0, 1], False, True, 3]]),
    ("_avg_pool2d_backward", [[R(1, 2, 3), [3, 4], [2, 2], [1, 1]]]),
    ("_avg_pool3d_backward", [[R(1, 1, 2, 1), [2, 3, 2], [2, 2, 2], [1, 1, 1]]]),
    ("_gather_planes", [[R(1, 2, 3), I([[[0, 5], [5, 1]]]), 2]]),
    ("_scatter_planes", [[R(1, 2, 2), I([[[0, 5], [5, 1]]]), [2, 3], False]]),
    ("_adaptive_avg_pool2d adaptive_max_pool2d", [[R(1, 3, 4), [2, 3]]]),
    ("_adaptive_avg_pool3d adaptive_max_pool3d", [[R(1, 2, 3, 2), [2, 2, 1]]]),
    ("_adaptive_avg_pool2d_backward", [[R(1, 2, 3), [1, 3, 4]]]),
    ("_adaptive_avg_pool3d_backward", [[R(1, 2, 2, 1), [1, 2, 3, 2]]]),
    ("fractional_max_pool2d", [[R(1, 1, 5, 4), [2, 2], [3, 2], N(U(1, 1, 2))]]),
    ("fractional_max_pool3d", [[R(1, 1, 4, 4, 3), [2, 2, 1], [2, 2, 2], N(U(1, 1, 3))]]),
    ("max_unpool2d", [[R(1, 2, 2), I([[[0, 3], [9, 11]]]), [3, 4]]]),
    ("max_unpool3d", [[R(1, 1, 2, 2), I([[[[0, 3], [9, 11]]]]), [2, 2, 3]]]),
    # ---- resampling
    ("""upsample_nearest1d _upsample_nearest_exact1d upsample_linear1d""",
     [[R(1, 2, 3), [5]], [R(1, 1, 4), [2], False, [0.5]]]),
    ("""upsample_nearest2d _upsample_nearest_exact2d upsample_bilinear2d upsample_bicubic2d
     _upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa""",
     [[R(1, 1, 3, 3), [4, 2]], [R(1, 1, 2, 3), [3, 4]]]),
    ("upsample_nearest3d _upsample_nearest_exact3d upsample_trilinear3d",
     [[R(1, 1, 2, 3, 2), [3, 2, 3]]]),
    ("upsample_linear1d", [[R(1, 2, 3), [5], True]]),
    ("upsample_bilinear2d upsample_bicubic2d", [[R(1, 1, 3, 3), [4, 2], True]]),
    ("""upsample_nearest1d_backward _upsample_nearest_exact1d_backward
     upsample_linear1d_backward""", [[R(1, 1, 5), [3]]]),
    ("""upsample_nearest2d_backward _upsample_nearest_exact2d_backward
     upsample_bilinear2d_backward upsample_bicubic2d_backward _upsample_bilinear2d_aa_backward
     _upsample_bicubic2d_aa_backward _upsample_lanczos2d_aa_backward""", [[R(1, 1, 4, 2), [3, 3]]]),
    ("""upsample_nearest3d_backward _upsample_nearest_exact3d_backward
     upsample_trilinear3d_backward""", [[R(1, 1, 3, 2, 2), [2, 3, 2]]]),
    ("im2col", [[R(1, 2, 3, 3), [2, 2], [1, 1], [0, 1], [1, 2]]]),
    ("col2im", [[R(1, 4, 4), [3, 3], [2, 2], [1, 1], [0, 0], [1, 1]]]),
    ("affine_grid_generator", [[R(1, 2, 3), [1, 1, 2, 3], False],
                               [R(1, 3, 4), [1, 1, 2, 2, 2], True]]),
    ("_affine_grid_backward", [[R(1, 2, 3, 2), [1, 1, 2, 3], False]]),
    ("grid_sampler_2d", [[R(1, 1, 3, 3), R(1, 2, 2, 2, low=-0.9, high=0.9), mode, padding, align]
                         for mode, padding, align in
                         ((0, 0, False), (0, 1, True), (1, 0, False), (2, 2, False))]),
    ("grid_sampler_3d", [[R(1, 1, 2, 3, 2), R(1, 1, 2, 1, 3, low=-0.9, high=0.9), 0, 0, False]]),
    ("grid_sampler_2d_backward", [[R(1, 1, 2, 2), R(1, 1, 3, 3),
                                   R(1, 2, 2, 2, low=-0.9, high=0.9), mode, 0, False]
                                  for mode in (0, 2)]),
    ("grid_sampler_3d_backward", [[R(1, 1, 1, 2, 1), R(1, 1, 2, 3, 2),
                                   R(1, 1, 2, 1, 3, low=-0.9, high=0.9), 0, 0, False]]),
]  # fmt: skip


def need_kernels(name: str) -> None:
    """Skip a row that is only called where there are kernels, on machines without llvmlite."""
    if name in ("_lstm_layer", "_gru_layer", "_rnn_layer"):
        pytest.importorskip("llvmlite")


REFUSED: dict[str, Sample] = {
    "floor_divide": call(R(2), P(2)),
    "scatter.reduce": call(R(2, 3), 1, I([[0, 0]]), R(1, 2), reduce="add"),
    "scatter.value_reduce": call(R(2, 3), 1, I([[0, 0]]), 1.5, reduce="multiply"),
    "_ctc_loss_backward": call(R(1), R(4, 1, 3), I([[1, 2]]), [4], [2], N(R(1)), N(R(1, 4, 5)), 0,
                               False),
    "bernoulli.p": call(R(2, 3), 0.4),
    "bincount": call(I([0, 1, 1]), R(3)),
    "linalg.linalg_ldl_factor_ex": call(R(3, 3)),
    "linalg.linalg_ldl_solve": call(R(2, 2), I([1, 2]), R(2, 1)),
    "geqrf": call(R(3, 2)),
    "_segment_reduce_backward": call(R(2), N(R(2)), N(R(3)), "sum",
                                     lengths=torch.tensor([1, 2])),
    "heaviside": call(R(2, 3), R(2, 3)),
    "_addmm_activation": call(R(2, 2), R(2, 3), R(3, 2)),
    "_native_multi_head_attention": call(R(1, 2, 4), R(1, 2, 4), R(1, 2, 4), 4, 2, R(12, 4), R(12),
                                         R(4, 4), R(4)),
    "_transformer_encoder_layer_fwd": call(
        R(1, 2, 4), 4, 2, R(12, 4), R(12), R(4, 4), R(4), False, False, 1e-5, R(4), R(4), R(4),
        R(4), R(3, 4), R(3), R(4, 3), R(4)),
    "_standard_gamma_grad": call(P(2, 3), P(2, 3)),
    "_sample_dirichlet": call(P(2, 3)),
    "_dirichlet_grad": call(U(2, 3), P(2, 3), P(2, 3)),
    "binomial": call(P(2, 3), U(2, 3)),
}  # fmt: skip
"""Rows whose derivative torch does not have either: their formulas raise."""

DRAWN: dict[str, Sample] = {
    "bernoulli": call(U(2, 3)),
    "normal.Tensor_Tensor": call(R(2, 3), P(2, 3)),
    "normal.Tensor_float": call(R(2, 3), 1.5),
    "normal.float_Tensor": call(0.5, P(2, 3)),
    "poisson": call(P(2, 3)),
}
"""Rows that draw random numbers: their gradient is 0 by definition."""

IMPLICIT: dict[str, Sample] = {"_standard_gamma": call(P(2, 3))}
"""Rows that draw random numbers, with a gradient that holds the chance fixed, not the draws: see
`random/test_implicit_gradients.py`.
"""

ALSO_COMPLEX = frozenset(
    """
sum.dim_IntList mean.dim prod.dim_int _var _std cumsum cumprod logcumsumexp linalg.vector_norm dist
squeeze squeeze.dim squeeze.dims unsqueeze transpose.int permute expand view _unsafe_view select.int
slice.Tensor diagonal unfold _as_strided split.Tensor split_with_sizes unbind.int cat stack
block_diag diag_embed flip repeat roll rot90 tril triu index.Tensor index_put gather index_select
masked_select take index_add index_copy index_fill.int_Tensor masked_fill.Tensor masked_scatter put
scatter.src scatter_add mm _matmul bmm _adjoint_times _times_adjoint _vector_times dot vdot mv addmm
addmv addr addbmm baddbmm _linear linalg.linalg_cross linalg.linalg_matrix_exp linalg.linalg_det
linalg.linalg_inv_ex linalg.linalg_slogdet linalg.linalg_solve_ex linalg.linalg_solve_triangular
convolution clone _to_copy _copied fill.Scalar fill.Tensor zero alias trace constant_pad_nd
_resize_ends _where diagonal_scatter select_scatter slice_scatter
cholesky_inverse cholesky_solve linalg.linalg_cholesky_ex linalg.linalg_eigh _linalg_eigvalsh
linalg.linalg_eig _linalg_eigvals _linalg_svdvals linalg.linalg_lu
linalg.linalg_lu_factor_ex _lu_solve linalg.linalg_qr _linalg_pinv
linalg.linalg_householder_product
""".split()
)
"""Kernels and views that are checked with complex numbers too; pointwise rows say it themselves."""

REAL_ONLY = frozenset(("_relu_grad", "_threshold_grad", "logaddexp", "_gelu_grad",
                       "_gelu_tanh_slope", "_mish_slope", "_softplus_slope",
                       "_log_sigmoid_slope"))  # fmt: skip
"""Pointwise rows whose formulas are written for real numbers."""

TWICE = frozenset(
    """
add.Tensor mul.Tensor div.Tensor pow.Tensor_Tensor pow.Tensor_Scalar exp log sqrt rsqrt sin tanh
sigmoid silu mish _gelu _gelu_tanh relu elu nn.functional.softplus abs reciprocal square erf lgamma
maximum atan2 hypot logaddexp lerp.Tensor addcmul addcdiv sum.dim_IntList mean.dim prod.dim_int _var
_std logsumexp cumsum cumprod logcumsumexp softmax.int log_softmax.int amax max.dim sort.stable
linalg.vector_norm view permute expand select.int slice.Tensor diagonal unfold _as_strided
split.Tensor unbind.int cat stack flip roll repeat index.Tensor index_put gather index_select
scatter_add masked_select mm _matmul bmm addmm baddbmm dot mv _linear _linear_nd convolution
mse_loss huber_loss smooth_l1_loss binary_cross_entropy_with_logits _cross_entropy nll_loss
native_layer_norm _rms_norm native_group_norm native_batch_norm avg_pool2d max_pool2d embedding
constant_pad_nd reflection_pad2d upsample_bilinear2d linalg.linalg_det linalg.linalg_inv_ex
linalg.linalg_solve_ex _fft_c2c _fft_r2c glu
""".split()
)
"""Rows whose second derivatives are checked."""


def _table() -> dict[str, list[Sample]]:
    table: dict[str, list[Sample]] = {}
    for names, samples in LINES:
        made = [s if isinstance(s, Sample) else Sample(tuple(s)) for s in samples]
        for name in names.split():
            table.setdefault(name, []).extend(made)
    return table


TABLE = _table()


def samples_of(name: str, op: Op) -> list[Sample]:
    """The samples of a row of the registry, complex ones included."""
    found = TABLE.get(name, [])
    if takes_complex(name, op):
        return [*found, *[replace(sample, complex=True) for sample in found]]
    return found


def takes_complex(name: str, op: Op) -> bool:
    """Whether a row's gradient is defined for complex numbers."""
    if op.kind != "pointwise":
        return name in ALSO_COMPLEX
    return name not in REAL_ONLY and (not op.dtypes or "complex" in op.dtypes)
