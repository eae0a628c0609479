"""Softmax over many classes, the rare ones in clusters."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn.containers import ModuleList, Sequential
from flambeau.nn.layers.linear import Linear
from flambeau.nn.module import Module

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])  # noqa: PYI024
BAD_CUTOFFS = (
    "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
    "where each value is between 1 and n_classes-1"
)


class AdaptiveLogSoftmaxWithLoss(Module):
    """Frequent classes in a head, rare ones in clusters of smaller dims (Grave et al., 2017).

    Classes are sorted by frequency; cluster i holds those from `cutoffs[i]` on and has
    in_features / div_valueⁱ⁺¹ features.

    >>> import flambeau as torch
    >>> head = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 100, cutoffs=[10, 50])
    >>> output, loss = head(torch.ones(4, 16), torch.tensor([0, 20, 60, 99]))
    >>> output.shape, loss.shape, head.log_prob(torch.ones(4, 16)).shape
    (torch.Size([4]), torch.Size([]), torch.Size([4, 100]))
    """

    in_features: int
    n_classes: int
    cutoffs: list[int]
    div_value: float
    head_bias: bool
    head: Linear
    tail: ModuleList

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        _check_cutoffs(cutoffs, n_classes)
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for place in range(self.n_clusters):
            size = int(in_features // div_value ** (place + 1))
            classes = self.cutoffs[place + 1] - self.cutoffs[place]
            self.tail.append(
                Sequential(
                    Linear(in_features, size, bias=False, **options),
                    Linear(size, classes, bias=False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        self.head.reset_parameters()
        for down, up in self.tail:  # type: ignore[misc]
            down.reset_parameters()
            up.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> Any:
        """The log-probabilities of the targets (N), and minus their mean."""
        _check_target(input_, target_)
        batched = target_.ndim > 0
        input: Any = input_ if batched else input_.unsqueeze(0)
        target: Any = target_ if batched else target_.unsqueeze(0)
        head_index, output, used = self._tail_output(input, target)
        if used != target.size(0):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, head_index.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _tail_output(self, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor, int]:
        """Where each target is in the head, what its cluster adds, and how many were found."""
        output = input.new_zeros(target.size(0))
        head_index = target.new_empty(target.size(0))
        used = 0
        bounds = [0, *self.cutoffs]
        for place, (low, high) in enumerate(zip(bounds, bounds[1:], strict=False)):
            mask = (target >= low) & (target < high)
            rows = mask.nonzero().squeeze()
            if rows.numel() == 0:
                continue
            used += rows.numel()
            if place == 0:
                head_index.index_copy_(0, rows, target[mask])
                continue
            cluster = F.log_softmax(self.tail[place - 1](input.index_select(0, rows)), dim=1)
            head_index.index_fill_(0, rows, self.shortlist_size + place - 1)
            local = cluster.gather(1, (target[mask] - low).unsqueeze(1))
            output.index_copy_(0, rows, local.squeeze(1))
        return head_index, output, used

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for place, cluster in enumerate(self.tail):
            within = F.log_softmax(cluster(input), dim=1)
            parts.append(within + head[:, self.shortlist_size + place].unsqueeze(1))
        return ops.cat(parts, dim=1)  # type: ignore[no-any-return]

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities of all classes: (N, in_features) to (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row; clusters are only looked into where needed."""
        scores = self.head(input)
        best = scores.argmax(dim=1)
        (rare,) = (best >= self.shortlist_size).nonzero(as_tuple=True)
        if len(rare) > 0:
            inside = self._get_full_log_prob(input[rare], scores[rare])
            best[rare] = inside.argmax(dim=1)
        return best


def _check_cutoffs(cutoffs: list[Any], n_classes: int) -> None:
    if not cutoffs:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    if (
        cutoffs != sorted(cutoffs)
        or min(cutoffs) <= 0
        or max(cutoffs) > n_classes - 1
        or len(set(cutoffs)) != len(cutoffs)
        or any(int(cutoff) != cutoff for cutoff in cutoffs)
    ):
        raise ValueError(BAD_CUTOFFS)


def _check_target(input: Tensor, target: Tensor) -> None:
    if target.ndim == 1:
        if input.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.ndim != 2:
            raise RuntimeError(
                "1D target tensor expects 2D input tensors, but found inputs with size"
                f"{input.size()}"
            )
    elif target.ndim == 0:
        if input.ndim != 1:
            raise RuntimeError(
                "0D target tensor expects 1D input tensors, but found inputs with size"
                f"{input.size()}"
            )
    else:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
