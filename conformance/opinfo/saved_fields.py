"""What users see of what nodes keep: `grad_fn._saved_*` of every operator, beside torch's.

    python conformance/opinfo/saved_fields.py                 # over PyTorch's operator database
    python conformance/opinfo/saved_fields.py --ops '^add$'   # over a part of it

The last node of each result is looked at: the names that begin with `_saved_` and `_raw_saved_`,
the values behind them, and the errors once the graph is freed. Where the libraries have other
nodes, nothing is compared; such results are counted.
"""

import argparse
import collections
import itertools
import re
import sys
import warnings

import bridge
import compare
import torch
from torch.testing._internal.common_methods_invocations import op_db

SAMPLES = 8
DTYPES = (torch.float64, torch.float32, torch.complex128)
EXPLAINED = {
    r"(Eig|Eigh|Svd|Mm)Backward0\._saved_(eigenvectors|U|Vh|mat2|self)\w*: ": "factors are as good with other signs, and so is what is made of them",
    r"(LinalgDet|LinalgSlogdet|LinalgSolveEx)Backward0 (has|should have) no .*_saved_(LU|pivots|B)$": "a gradient from the result and the matrix, which are factored again",
    r"LinalgSolveTriangularBackward0 .*_saved_(self|A)$": "the same, by the other name",
    r"(NllLoss|NllLoss2D)Backward0 has no .*_saved_total_weight$": "the sum of weights is computed again where a gradient needs it",
    r"(cross_entropy|linear_cross_entropy).*: NllLoss(2D)?Backward0\._saved_(self|target): ": "one step from scores to the loss: scores are saved, not their logarithms",
    r"rms_norm: MulBackward0 has no ": "one step for what PyTorch takes apart",
    r"LogSigmoidBackward0 has no .*buffer$|MultilabelMarginLossBackward0 has no .*is_target$": "is not computed by the forward pass",
    r"RreluWithNoiseBackward0 ": "slopes are saved, not what they were drawn from",
    r"nn\.functional\.linear: (Addmm|View)Backward0 has no ": "one step for several nodes",
    r"diag: DiagonalBackward0_copy |narrow_copy: NarrowCopyBackward0 ": "a copy in one step, of the arguments that the step has",
    r"clamp: ClampBackward0 has no .*_saved_(min|max)$": "bounds as tensors that are broadcast beforehand",
    r"conv3d: ConvolutionBackward0\._saved_(output_)?padding: kind or length$": "`padding='valid'` is a zero for each dim, not one for all",
    r"AsStridedBackward0\._saved_storage_offset: 0 for None$": "an offset not given is looked up",
    r"_saved_correction: 1 for None$": "`correction=None` is not told from none given",
    r"_saved_dim: (kind or length|\d+ for \d+)$": "a dim counted from the other end, or all of them",
    r"ctc_loss.*_saved_result1: values$": "sums of probabilities are kept in another layout",
    r"embedding_bag: EmbeddingBagBackward0": "which entries of bags are kept",
    r"(normalize|outer|trapz|trapezoid|kl_div|masked\.var): (Div|Mul)Backward\d\._saved_": "the same factor before it is broadcast, or of another type",
    r"(einsum: ViewBackward0|scaled_dot_product_attention: UnsafeViewBackward0)\._saved_self_sym_s": "dims of size 1 are dropped earlier",
    r"masked\.median: NanmedianBackward1\._saved_indices: values$": "which of equal elements",
    r"CopyBackwards should have no _saved_src_sym_sizes$": "the sizes of what was copied are needed, and shown",
}
"""Patterns of lines "operator: what" that stay, and why."""


def fields(node):
    return {n for n in dir(node) if n.startswith(("_saved_", "_raw_saved_"))}


class Facts:
    """What one library shows of a node, in words and numbers that both have."""

    def __init__(self, side):
        self.side = side

    def of(self, node, name):
        try:
            value = getattr(node, name)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return self.described(value)

    def described(self, value):
        if isinstance(value, self.side.get("Tensor")):
            return self.side.fetch(value), bool(value.requires_grad)
        if isinstance(value, (tuple, list)):
            return type(value).__name__, [self.described(v) for v in value]
        if isinstance(value, (bool, int, float, complex, str)) or value is None:
            return value
        text = str(value)
        return type(value).__name__ if text.startswith("<") or "object at" in text else text


def difference(theirs, ours):
    """In what two descriptions differ, or None."""
    if isinstance(theirs, tuple) and isinstance(ours, tuple):
        if isinstance(theirs[0], torch.Tensor) and isinstance(ours[0], torch.Tensor):
            return tensors_differ(theirs, ours)
        if isinstance(theirs[1], list) and isinstance(ours[1], list):
            if theirs[0] != ours[0] or len(theirs[1]) != len(ours[1]):
                return "kind or length"
            return next(filter(None, map(difference, theirs[1], ours[1])), None)
        return "kind"
    if isinstance(theirs, float) and isinstance(ours, float):
        same = theirs == ours or theirs != theirs and ours != ours
        return None if same else f"{ours!r} for {theirs!r}"
    if type(theirs) is not type(ours):
        return f"{short(ours)} for {short(theirs)}"
    return None if theirs == ours else f"{ours!r} for {theirs!r}"


def short(value):
    return f"a {type(value[0]).__name__}" if isinstance(value, tuple) else repr(value)


def tensors_differ(theirs, ours):
    (want, wants), (got, gets) = theirs, ours
    if want.dtype != got.dtype:
        return f"{got.dtype} for {want.dtype}"
    if want.shape != got.shape:
        return f"shape {tuple(got.shape)} for {tuple(want.shape)}"
    if wants != gets:
        return f"requires_grad {gets}"
    close = torch.allclose(want, got, 1e-4, 1e-6, equal_nan=True)
    return None if close else "values"


def results(side, call, function):
    side.seed(0)
    args, kwargs = side.send(call[0]), side.send(call[1])
    found = compare.flatten([function(*args, **kwargs)])
    tensor = side.get("Tensor")
    return [x for x in found if isinstance(x, tensor) and x.grad_fn is not None]


def freed(side, result):
    """Walks back from a result, and so frees its node."""
    ones = side.get("ones_like")(result)
    result.backward(ones)


def compared(op, functions, sides, call):
    """Lines on differences between the nodes of one call's results."""
    want, got = (results(s, call, f) for s, f in zip(sides, functions, strict=True))
    if len(want) != len(got):
        yield "count", f"{len(got)} results with nodes for {len(want)}"
        return
    for theirs, ours in zip(want, got, strict=True):
        nodes = theirs.grad_fn, ours.grad_fn
        title = nodes[0].name()
        if title != nodes[1].name():
            yield "other node", f"{nodes[1].name()} for {title}"
            continue
        names = [fields(node) for node in nodes]
        for name in sorted(names[0] - names[1]):
            yield "names", f"{title} has no {name}"
        for name in sorted(names[1] - names[0]):
            yield "names", f"{title} should have no {name}"
        common = sorted(names[0] & names[1])
        yield "compared", len(common)
        facts = [Facts(side) for side in sides]
        yield from values(title, common, facts, nodes, "value")
    for theirs, ours in itertools.islice(zip(want, got, strict=True), 1):
        nodes = theirs.grad_fn, ours.grad_fn
        if nodes[0].name() != nodes[1].name():
            continue
        try:
            freed(sides[0], theirs)
        except Exception:
            continue
        freed(sides[1], ours)
        common = sorted(fields(nodes[0]) & fields(nodes[1]))
        yield from values(nodes[0].name(), common, facts, nodes, "value once freed")


def values(title, names, facts, nodes, word):
    for name in names:
        found = difference(facts[0].of(nodes[0], name), facts[1].of(nodes[1], name))
        if found:
            yield word, f"{title}.{name}: {found}"


def samples_of(op):
    for dtype in DTYPES:
        if dtype in op.supported_backward_dtypes("cpu"):
            samples = op.sample_inputs("cpu", dtype, requires_grad=True)
            return list(itertools.islice(samples, SAMPLES))
    return []


def survey(op, sides, tally):
    name = op.name + (f" {op.variant_test_name}" if op.variant_test_name else "")
    for sample in samples_of(op):
        call = (sample.input, *sample.args), sample.kwargs
        try:
            functions = [side.send_callable(op.op, op.name) for side in sides]
            for kind, what in compared(op, functions, sides, call):
                tally(name, kind, what)
        except bridge.Missing:
            tally(name, "no such name", "")
        except Exception as error:
            tally(name, "not run", f"{type(error).__name__}: {str(error).splitlines()[:1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ops", default="", help="a pattern of operators' names")
    words = parser.parse_args()
    import flambeau

    warnings.simplefilter("ignore")
    bridge.remember_constructor_arguments()
    sides = [bridge.Bridge(torch), bridge.Bridge(flambeau)]
    counts, found = collections.Counter(), {}

    def tally(name, kind, what):
        if kind == "compared":
            counts[kind] += what
            return
        line = f"{name}: {what}"
        explained = any(re.search(pattern, line) for pattern in EXPLAINED)
        kind = "explained" if explained else kind
        if (kind, line) not in found:
            counts[kind] += 1
            found[kind, line] = True

    for op in op_db:
        if op.supports_autograd and re.search(words.ops, op.name):
            survey(op, sides, tally)
    for kind, line in sorted(found):
        print(f"{kind} | {line}")
    print(", ".join(f"{kind}: {count}" for kind, count in sorted(counts.items())))
    wrong = [kind for kind in ("names", "value", "value once freed") if counts[kind]]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
