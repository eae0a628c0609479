"""Adam for gradients that touch few rows of a table."""

from __future__ import annotations

from typing import Any, ClassVar

from flambeau._tensor.sparse import SparseTensor
from flambeau.optim.elementwise import zeros_like
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.options import (
    Group,
    State,
    above_zero,
    check_betas,
    check_range,
    check_rate,
    number,
)


class SparseAdam(Optimizer):
    """m ← m + (1 - β1)·(g - m);  v ← v + (1 - β2)·(g² - v);
    p ← p - lr·√(1 - β2ᵗ)/(1 - β1ᵗ) · m / (√v + eps)   (Kingma and Ba, 2015),

    for the rows alone that have a gradient: the moments of the others do not decay, and t counts
    the steps of the whole parameter. Gradients must be sparse and parameters dense and real.

    >>> import flambeau as torch
    >>> table = torch.nn.Embedding(4, 2, sparse=True)
    >>> before = table.weight.detach().clone()
    >>> optimizer = torch.optim.SparseAdam(table.parameters())
    >>> table(torch.tensor([1])).sum().backward()
    >>> optimizer.step()
    >>> (table.weight != before).any(1)
    tensor([False,  True, False, False])
    """

    later: ClassVar[Group] = {}

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_rate(lr)
        check_range(above_zero(lr), f"Invalid learning rate: {lr}")
        check_range(above_zero(eps), f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        _check_params(self.param_groups)

    def prepared(self, parameter: Any, group: Group) -> State:
        """The state of a parameter, filled, with the step counted; dense gradients are refused."""
        if not parameter._grad.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        state = super().prepared(parameter, group)
        state["step"] += 1
        return dict(state)  # with the number of this step, should there be two of the parameter

    def check_layout(self, grad: Any) -> None:
        """Gradients are to be sparse: see `prepared`."""

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        state["step"] = 0
        state["exp_avg"] = zeros_like(parameter)
        state["exp_avg_sq"] = zeros_like(parameter)

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        """One step of the rows that have a gradient."""
        grad = grad.coalesce()  # the step is not linear in g
        if grad._nnz():
            self._step_rows(parameter, grad, state, group)

    def _step_rows(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        beta1, beta2 = group["betas"]
        step = state["step"]
        values = grad._values()
        mean = state["exp_avg"].sparse_mask(grad)._values()
        square = state["exp_avg_sq"].sparse_mask(grad)._values()
        mean_change = (values - mean) * (1 - beta1)
        square_change = (values * values - square) * (1 - beta2)
        state["exp_avg"].add_(at_places(grad, mean_change))
        state["exp_avg_sq"].add_(at_places(grad, square_change))
        step_size = number(group["lr"]) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        ratio = (mean + mean_change) / ((square + square_change).sqrt() + group["eps"])
        parameter.add_(at_places(grad, ratio * -step_size))


def at_places(pattern: Any, values: Any) -> SparseTensor:
    """New values at the places of a sparse tensor."""
    from flambeau._ops.sparse.entries import with_places

    return with_places(pattern, values)


def _check_params(groups: list[Group]) -> None:
    places = [
        (parameter, [index, position])
        for index, group in enumerate(groups)
        for position, parameter in enumerate(group["params"])
    ]
    sparse = [place for parameter, place in places if parameter.is_sparse]
    complexes = [place for parameter, place in places if parameter.is_complex()]
    check_range(not sparse, f"Sparse params at indices {sparse}: SparseAdam requires dense "
                            "parameter tensors")  # fmt: skip
    check_range(not complexes, f"Complex params at indices {complexes}: SparseAdam does not "
                               "support complex parameters")  # fmt: skip
