"""Explained differences that random programs of autograd find; see `explained.py`."""

from __future__ import annotations

from conformance.explanation import Explained

AUTOGRAD = (
    Explained(
        "`.data =` of another shape, for a tensor that a recorded operator knows already",
        "refuses gradients of the new shape, while the node of the old one lives",
        "takes them",
        case=r"\.data = |\.set_\(",
        detail=r"invalid gradient at index|is not expandable to size",
    ),
    Explained(
        "The shape of a gradient whose leaf was given another one by `.data =` meanwhile",
        "that of the leaf, by its order of steps",
        "that of the operand",
        group="^shape of a gradient",
        case=r"\.data = ",
    ),
    Explained(
        "Which of several operators an error about changed memory names, where PyTorch composes "
        "one of others",
        "its own",
        "ours",
        group="^words of an error",
        detail=r"output \d of (\w+),.*modified by an inplace.* output \d of (?!\1,)",
    ),
    Explained(
        "A complex number over itself",
        "1 but for rounding in the imaginary part",
        "1",
        group=r"^values \| v\d+ = ([xv]\d+) / \1$",
    ),
    Explained(
        "Storages that grow (`set_` with a larger shape or type)",
        "grow under all tensors",
        "the tensor gets new memory",
        group="^memory",
        case=r"\.set_\(",
    ),
    Explained(
        "Whether a gradient that nothing which learns is part of requires grad",
        "yes where an operand of the operator does",
        "no",
        group="^requires_grad of a gradient",
        case="conv|create_graph=True",
        detail="^False for True",
    ),
    Explained(
        "Saved tensors: some formulas save less, `ndtr` its operand",
        "a write to what was saved is an error",
        "is one where ours saved it",
        group="^(does not raise|raises) RuntimeError",
        case="ndtr",
        detail="modified by an inplace operation",
    ),
    Explained(
        "`threshold_` of expanded memory",
        "writes to each element several times",
        "refuses, as all in-place operators do",
        group=r"^raises RuntimeError \| threshold_",
        detail="more than one element of the written-to tensor",
    ),
    Explained(
        "Strides of `rsub` and `mvlgamma` of operands that lie differently",
        "by the operand that is first inside",
        "by the first argument",
        group=r"^stride.*(rsub|mvlgamma)",
    ),
    Explained(
        "Strides of gradients from `autograd.grad`, under other names",
        "as the formula leaves them",
        "as ours does",
        group="^stride",
        case=r"\n *v\d+ = [^\n]*\bg\d+",
    ),
    Explained(
        "Hooks of the node of `triangular_solve` where only its second result is used",
        "run",
        "the two results have nodes of their own",
        group="^number of values",
        case=r"triangular_solve.*grad_fn\.register",
    ),
    Explained(
        "Decompositions and determinants of matrices with NaN or of rank 0",
        "which signs and rows their library leaves",
        "which ours do",
        group=r"^values.*(lu\w*|slogdet|logdet|det|geqrf|qr)$",
        detail=r"nan|-?0\.0",
    ),
    Explained(
        "`as_strided_scatter` into memory that repeats",
        "what was written last",
        "the same, in another order",
        group="^values",
        case="as_strided_scatter",
    ),
    Explained(
        "Products of inference tensors that PyTorch copies into another shape first",
        "the copy is saved",
        "refused: the tensor itself is saved",
        group="^raises RuntimeError",
        case=r"@|matmul|einsum|tensordot|linear|bilinear|inner|mv\(",
        detail="Inference tensors cannot be saved",
    ),
    Explained(
        "Leaves that `set_` gave other memory",
        "start anew: gradients of earlier graphs do not find them",
        "stay the same leaves",
        group="^values.*grad|^None or not",
        case=r"x\d+\.set_\(",
    ),
)
