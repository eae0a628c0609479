"""Parametrizations to register: weight normalization, spectral normalization, orthogonality."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.missing import lazily
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.nn import functional as F
from flambeau.nn.module import Module
from flambeau.nn.utils import parametrize
from flambeau.nn.utils.spectral_norm import (
    as_matrix,
    check_iterations,
    default_dim,
    random_unit_vectors,
)

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor_of(module: Module, name: str) -> Tensor:
    tensor = getattr(module, name, None)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return tensor


# ---- orthogonal matrices


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(q: Tensor) -> bool:
    tolerance = 10.0 * q.size(-2) * dt.finfo(q.dtype).eps
    identity = ops.eye(q.size(-1), dtype=q.dtype, device=q.device)
    return bool(ops.allclose(q.mH @ q, identity, atol=tolerance))


def _make_orthogonal(a: Tensor) -> Tensor:
    """Q of A = QR with a tall A and a diagonal of R that is not negative."""
    reflectors, tau = ops.geqrf(a)
    q = ops.linalg.householder_product(reflectors, tau)
    signs = reflectors.diagonal(dim1=-2, dim2=-1).sgn()
    return q * signs.unsqueeze(-2)  # type: ignore[no-any-return]


def _skew(x: Tensor) -> Tensor:
    """A skew-Hermitian (*, n, n) from the lower triangle of a tall (*, n, k)."""
    n, k = x.shape[-2:]
    x = x.tril()
    if n != k:
        x = ops.cat([x, x.new_zeros((*x.shape[:-2], n, n - k))], dim=-1)
    return x - x.mH


def _matrix_exp(x: Tensor) -> Tensor:
    return ops.matrix_exp(_skew(x))  # type: ignore[no-any-return]


def _cayley(x: Tensor) -> Tensor:
    """(I - A/2)^-1 (I + A/2)."""
    a = _skew(x)
    identity = ops.eye(a.size(-1), dtype=a.dtype, device=a.device)
    return ops.linalg.solve(identity - a / 2, identity + a / 2)  # type: ignore[no-any-return]


def _householder(x: Tensor) -> Tensor:
    """The product of reflections along the columns below the diagonal, which holds the signs."""
    reflectors = x.tril(diagonal=-1)
    tau = 2.0 / (1.0 + (reflectors * reflectors).sum(dim=-2))
    q = ops.linalg.householder_product(reflectors, tau)
    # The integers keep the signs out of the gradient.
    signs = x.diagonal(dim1=-2, dim2=-1).int()
    return q * signs.unsqueeze(-2)  # type: ignore[no-any-return]


MAPS = {
    _OrthMaps.matrix_exp: _matrix_exp,
    _OrthMaps.cayley: _cayley,
    _OrthMaps.householder: _householder,
}


class _Orthogonal(Module):
    """Q = B f(X): f maps any tall X to orthonormal columns; B is where the training starts.

    Dynamic trivialization (https://arxiv.org/abs/1909.09501) keeps B in the buffer `base`; without
    it, Q = f(X). Wide matrices are treated as transposed ones.
    """

    base: Tensor

    def __init__(
        self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        is_wide = X.size(-2) < X.size(-1)
        tall: Any = X.mT if is_wide else X
        q = MAPS[self.orthogonal_map](tall)[..., : tall.size(-1)]
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if is_wide else q

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """An X whose Q is this one, or the nearest that the QR decomposition gives."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. "
                f"Got a tensor of shape {Q.shape}."
            )
        is_wide = Q.size(-2) < Q.size(-1)
        tall = Q.mT if is_wide else Q
        if hasattr(self, "base"):
            self.base = _completed(tall)
            # f(-I) = I for Householder's map, which reads signs from the diagonal.
            start = ops.zeros_like(Q)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start  # type: ignore[no-any-return]
        if self.orthogonal_map is not _OrthMaps.householder:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        start = _reflectors_of(tall)
        return start.mT if is_wide else start


def _completed(tall: Tensor) -> Tensor:
    """An orthogonal (*, n, n) that begins with the columns of (*, n, k), made orthonormal."""
    n, k = tall.shape[-2:]
    if n != k:
        shape = (*tall.shape[:-2], n, n - k)
        rest = ops.randn(shape, dtype=tall.dtype, device=tall.device)
        return _make_orthogonal(ops.cat([tall, rest], dim=-1))
    return tall.clone() if _is_orthogonal(tall) else _make_orthogonal(tall)


def _reflectors_of(tall: Tensor) -> Tensor:
    """Householder's vectors below a diagonal of signs, such that R has a positive diagonal."""
    reflectors, tau = ops.geqrf(tall)
    diagonal = reflectors.diagonal(dim1=-2, dim2=-1)
    # LAPACK marks a reflection that it leaves out by a tau of exactly 0.
    signs = diagonal.sign()
    diagonal.copy_(ops.where(tau == 0.0, -signs, signs))
    return reflectors  # type: ignore[no-any-return]


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a matrix, or a batch of them (*, m, n), orthogonal, or unitary where it is complex.

    Columns are orthonormal where m >= n, otherwise rows. The tensor starts as it is if it is
    orthogonal, otherwise as the Q of its QR decomposition.

    Args:
        name: the parameter or buffer.
        orthogonal_map: "matrix_exp" (exp A) and "cayley" ((I - A/2)^-1 (I + A/2)) with a
            skew-symmetric A, or "householder" (a product of reflections). By default the first for
            square or complex tensors, the last for others.
        use_trivialization: keep the start as a factor of its own, which helps convergence
            (https://arxiv.org/abs/1909.09501) and costs an n x n buffer.

    Raises:
        ValueError: no such tensor or map, fewer than 2 dims, or "householder" for complex tensors.
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        is_square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if is_square or weight.is_complex() else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    step = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, step, unsafe=True)


# ---- weight normalization


class _WeightNorm(Module):
    """w = g v / |v|: original0 is g, original1 is v."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return ops._weight_norm(weight_v, weight_g, self.dim)  # type: ignore[no-any-return]

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """(g, v) of a weight: its norms and itself."""
        return ops.norm_except_dim(weight, 2, self.dim), weight


class _OldWeightNormKeys:
    """Renames the keys that the older `torch.nn.utils.weight_norm` writes, before loading."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, state_dict: dict[str, Any], prefix: str, *unused: Any) -> None:
        old = [f"{prefix}{self.name}{suffix}" for suffix in ("_g", "_v")]
        if not all(key in state_dict for key in old):
            return
        for i, key in enumerate(old):
            new = f"{prefix}parametrizations.{self.name}.original{i}"
            state_dict[new] = state_dict.pop(key)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train a weight's length g and direction v apart (https://arxiv.org/abs/1602.07868).

    They are `module.parametrizations.weight.original0` and `original1`. Checkpoints of the older
    `torch.nn.utils.weight_norm` load too.

    Args:
        dim: the dim that keeps a norm of its own per index; None: one norm over all.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(_OldWeightNormKeys(name))
    return module


# ---- spectral normalization


class _SpectralNorm(Module):
    """W / sigma(W), with the largest singular value from a power iteration.

    The buffers `_u` (rows) and `_v` (the rest) approach the first singular vectors; they move on
    each access while the module trains. A vector is divided by its norm.
    """

    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but "
                f"got {dim})"
            )
        check_iterations(n_power_iterations)
        self.dim = dim % ndim
        self.eps = eps
        if ndim == 1:
            return
        self.n_power_iterations = n_power_iterations
        matrix = as_matrix(weight, self.dim)
        u, v = random_unit_vectors(matrix, eps)
        self.register_buffer("_u", u)
        self.register_buffer("_v", v)
        self._power_method(matrix, 15)

    @no_grad()
    def _power_method(self, matrix: Tensor, count: int) -> None:
        for _ in range(count):
            self._u.copy_(F.normalize(ops.mv(matrix, self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(ops.mv(matrix.H, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        steps = self.n_power_iterations if self.training else 0
        if steps > 0:
            self._power_method(matrix, steps)
        # Copies: the next access changes the buffers before this one's backward has read them.
        largest = ops.vdot(self._u.clone(), ops.mv(matrix, self._v.clone()))
        return weight / largest  # type: ignore[no-any-return]

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value as it is."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value (https://arxiv.org/abs/1802.05957).

    The value is estimated by power iteration over the weight seen as a matrix, which goes on with
    every access while the module trains.

    Args:
        n_power_iterations: its steps per access.
        eps: the least norm that vectors are divided by.
        dim: the dim that counts outputs: 1 for transposed convolutions, else 0 by default.
    """
    weight = _tensor_of(module, name)
    chosen = default_dim(module) if dim is None else dim
    step = _SpectralNorm(weight, n_power_iterations, chosen, eps)
    return parametrize.register_parametrization(module, name, step)


__getattr__ = lazily(__name__)
