"""Spectral normalization by a hook, W / sigma(W) (https://arxiv.org/abs/1802.05957).

The older form; `parametrizations.spectral_norm` is the newer.
"""

from __future__ import annotations

from typing import Any, TypeVar

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.nn import functional as F
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "remove_spectral_norm",
    "spectral_norm",
]

T_module = TypeVar("T_module", bound=Module)

UNINITIALIZED = (
    "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the "
    "dummy forward before applying spectral normalization"
)


class SpectralNorm:
    """The forward pre-hook that computes `<name>` from `<name>_orig`, and what it needs.

    The buffers `<name>_u` and `<name>_v` approach the first singular vectors of the weight seen as
    a matrix, by power iteration while the module trains.

    Args:
        name: the parameter.
        n_power_iterations: steps of the power iteration before each forward.
        dim: the dim that gives the rows of the matrix.
        eps: the least norm that vectors are divided by.
    """

    # 1: `v` is a buffer and the weight itself is none.
    _version = 1
    name: str
    dim: int
    n_power_iterations: int
    eps: float

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        self.name = name
        self.dim = dim
        check_iterations(n_power_iterations)
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight as (size of `dim`, all the rest)."""
        return as_matrix(weight, self.dim)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """W / (u W v), after the iteration if wanted."""
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            u, v = self._iterated(matrix, u, v)
        return weight / ops.dot(u, ops.mv(matrix, v))  # type: ignore[no-any-return]

    def _iterated(self, matrix: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The buffers after some rounds; copies, because a second forward changes the buffers
        before the first one's backward reads them.
        """
        with no_grad():
            for _ in range(self.n_power_iterations):
                v.copy_(F.normalize(ops.mv(matrix.t(), u), dim=0, eps=self.eps))
                u.copy_(F.normalize(ops.mv(matrix, v), dim=0, eps=self.eps))
            return u.clone(), v.clone()

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again, with its present value."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        weight = self.compute_weight(module, do_power_iteration=module.training)
        setattr(module, self.name, weight)

    def _solve_v_and_rescale(self, matrix: Tensor, u: Tensor, target_sigma: Tensor) -> Tensor:
        """The v with u in the direction of W v, and u W v = target_sigma."""
        transposed = matrix.t()
        v = ops.linalg.pinv(transposed.mm(matrix)).mm(transposed).mv(u)
        return v.mul_(target_sigma / ops.dot(u, ops.mv(matrix, v)))  # type: ignore[no-any-return]

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Replace a parameter by `<name>_orig` and two buffers, and add the hooks."""
        for other in module._forward_pre_hooks.values():
            if isinstance(other, SpectralNorm) and other.name == name:
                raise RuntimeError(
                    f"Cannot register two spectral_norm hooks on the same parameter {name}"
                )
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if isinstance(weight, UninitializedParameter):
            raise ValueError(UNINITIALIZED)
        with no_grad():
            u, v = random_unit_vectors(hook.reshape_weight_to_matrix(weight), eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # A plain attribute, for those who read it before the first forward.
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


def check_iterations(count: int) -> None:
    """Power iteration takes at least one step."""
    if count <= 0:
        raise ValueError(
            f"Expected n_power_iterations to be positive, but got n_power_iterations={count}"
        )


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A tensor as (size of `dim`, all the rest)."""
    if dim != 0:
        weight = weight.permute(dim, *[d for d in range(weight.dim()) if d != dim])
    return weight.reshape(weight.size(0), -1)  # type: ignore[no-any-return]


def random_unit_vectors(matrix: Tensor, eps: float) -> list[Tensor]:
    """(u, v): vectors of length 1, drawn evenly, for (h, w)."""
    drawn = [matrix.new_empty(size).normal_(0, 1) for size in matrix.size()]
    return [F.normalize(vector, dim=0, eps=eps) for vector in drawn]


def default_dim(module: Module) -> int:
    """The dim of a layer's weight that counts its outputs."""
    from flambeau.nn.layers.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

    return int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))


class SpectralNormLoadStateDictPreHook:
    """Completes states of the time before `<name>_v` was in them."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        fn = self.fn
        version = local_metadata.get("spectral_norm", {}).get(fn.name + ".version")
        if version is not None and version >= 1:
            return
        key = prefix + fn.name
        is_new = all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v"))
        if version is None and is_new and key not in state_dict:
            # Only the metadata is missing, as in states made by hand.
            return
        lacking = [key + s for s in ("_orig", "", "_u") if key + s not in state_dict]
        if strict:
            missing_keys.extend(lacking)
        if not lacking:
            self._add_v(state_dict, key)

    @no_grad()
    def _add_v(self, state_dict: dict[str, Any], key: str) -> None:
        original = state_dict[key + "_orig"]
        sigma = (original / state_dict.pop(key)).mean()
        matrix = self.fn.reshape_weight_to_matrix(original)
        u = state_dict[key + "_u"]
        state_dict[key + "_v"] = self.fn._solve_v_and_rescale(matrix, u, sigma)


class SpectralNormStateDictHook:
    """Notes the version in a state's metadata."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]
    ) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(
    module: T_module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> T_module:
    """Divide a weight by its largest singular value, estimated before every forward.

    The parameter `name` is replaced by `<name>_orig` and the buffers `<name>_u` and `<name>_v`,
    the vectors of the power iteration, which proceeds while the module trains.

    Args:
        n_power_iterations: its steps per forward.
        eps: the least norm that vectors are divided by.
        dim: the dim that counts outputs: 1 for transposed convolutions, else 0 by default.

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # it is deprecated
    ...     layer = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 3))
    >>> sorted(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    chosen = default_dim(module) if dim is None else dim
    SpectralNorm.apply(module, name, n_power_iterations, chosen, eps)
    return module


def remove_spectral_norm(module: T_module, name: str = "weight") -> T_module:
    """Undo `spectral_norm`; the weight keeps its present value.

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # it is deprecated
    ...     layer = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 3))
    >>> list(torch.nn.utils.remove_spectral_norm(layer).state_dict())
    ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    kinds = (SpectralNormStateDictHook, SpectralNormLoadStateDictPreHook)
    for table in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for key, other in list(table.items()):
            other = getattr(other, "hook", other)  # torch's files have it wrapped
            if isinstance(other, kinds) and other.fn.name == name:
                del table[key]
    return module
