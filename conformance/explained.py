"""Differences of drawn programs that are explained, and the table of them in the documentation.

    python -m conformance.explained FINDINGS.jsonl ...   # count findings by their explanations
    python -m conformance.explained --write              # the table in docs/compatibility.md

The generators (`conformance.calls.generated`, `layers`, `modules`, `autograd`) write what they find
as lines of JSON. An explanation says which of them it is about by patterns: of the kind of the
difference and the calls in it ("group"), of the program ("case"), and of what both libraries said
("detail"). What no explanation fits is shown by kinds, the most frequent first.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from conformance.explained_autograd import AUTOGRAD
from conformance.explained_calls import CALLS
from conformance.explained_small_print import SMALL_PRINT
from conformance.explanation import Explained

PAGE = Path(__file__).parents[1] / "docs" / "compatibility.md"
BEGIN, END = "<!-- explained: begin -->\n", "<!-- explained: end -->\n"


EXPLAINED = (
    *AUTOGRAD,
    Explained(
        "`special.airy_ai` between -4.1 and -2.09",
        "off by up to 2e-5",
        "right to the last digits",
        group=r"values.*airy_ai",
    ),
    Explained(
        "`svdvals` and nuclear norms whose operand is written to before backward",
        "computes the vectors at once, and keeps them alone",
        "computes them in backward, from the operand: an error",
        case=r"nuclear_norm|svdvals|'nuc'",
        detail="modified by an inplace operation",
    ),
    Explained(
        "The gradient of `batch_norm` in evaluation, with a weight that is not contiguous",
        "reads other numbers than the weight's",
        "as of a contiguous copy",
        group=r"gradient.*batch_norm|gradient.*BatchNorm",
        case=r"'sliced'|'offset'|'transposed'|'expanded'|permute",
    ),
    Explained(
        "The gradient of `group_norm` with a bias and no weight",
        "RuntimeError: tensor does not have a device",
        "is there",
        detail="tensor does not have a device",
    ),
    Explained(
        "The gradient of `vander`",
        "RuntimeError: its own columns were written to in place",
        "is there",
        group=r"does not raise.*vander",
    ),
    Explained(
        "The gradient of `ldexp` with an exponent of integers below 0",
        "0: the power is taken among integers",
        "the power of two",
        group=r"gradient.*ldexp",
    ),
    Explained(
        "`logsumexp` over `dim=[]`",
        "RuntimeError: output with shape [] doesn't match the broadcast shape",
        "over all dims, as the other reductions",
        group=r"does not raise.*logsumexp",
    ),
    Explained(
        "Transposed convolutions whose result has a size of 0, of images",
        "empty in the types that oneDNN computes, else RuntimeError",
        "RuntimeError in every type",
        group=r"raises RuntimeError.*(conv_transpose|ConvTranspose)",
        detail=r"Calculated output size per channel",
    ),
    Explained(
        "Gradients of masks in attention over an empty batch",
        "None",
        "zeros",
        group=r"other value.*scaled_dot_product_attention",
    ),
    Explained(
        "Gradients that are 0 but for rounding: norms over a single element",
        "what is left by its order of operations",
        "what is left by ours",
        group=r"gradient \| (layer_norm|LayerNorm|RMSNorm|normalize|Transformer\w+Layer)$",
        case=r"\(1,\)|\b1\)|dim=-1|p=",
    ),
    Explained(
        "Gradients of half types for a wider operand without dims",
        "are summed up, rounded, and cast",
        "are cast and summed up",
        group=r"values of a gradient \| (rsub|maximum|minimum|pow|fmax|fmin|where|lerp)",
        case=r"'(float16|bfloat16)'",
    ),
    Explained(
        "Layers that have no shape yet, in functions of `nn.init`, `autograd.grad` and operators",
        "the words of the wrapper that meets them first",
        "the words of the operator",
        case="Lazy|Uninitialized",
        detail="uninitialized parameter|UninitializedParameter",
    ),
    Explained(
        "Writes through `detach()` of a view that was made in `no_grad`",
        "an error at `backward`",
        "no error: the view has no history",
        group="does not raise RuntimeError",
        detail="A view was created in no_grad mode",
    ),
    Explained(
        "Positions in errors about types of arguments",
        "none for arguments given by name",
        "(position 2)",
        detail=r"\(position \d+\)",
    ),
    Explained(
        "Weights of `batch_norm` in evaluation that do not lie in a row, in its gradient",
        "reads past them, as if they did",
        "reads them where they lie",
        group="gradient .* batch_norm|BatchNorm",
        case="sliced|expanded",
    ),
    Explained(
        "Kernels of `lp_pool1d` given as tuples; `logsumexp(dim=[])` of expanded tensors; "
        "gradients of `vander` of halves",
        "an error from within",
        "works",
        group="does not raise",
        case=r"lp_pool1d|LPPool1d|logsumexp|vander",
    ),
    Explained(
        "Transposed convolutions whose result is empty",
        "empty or an error",
        "an error",
        group="conv_transpose|ConvTranspose",
        detail="Output size is too small",
    ),
    Explained(
        "Which invalid index `max_unpool` names",
        "that which a thread meets first",
        "the first",
        detail="invalid max index",
    ),
    Explained(
        "Strides where dims of size 1, expanded input or three operands leave the order open",
        "as its kernels leave them",
        "as ours do",
        group="^stride",
        case=r"[(, ]1[,)]|expanded|permute|einsum",
    ),
    Explained(
        "Gradients that cancel to nothing (norms over one feature)",
        "their rounding",
        "0, or another rounding",
        group="^values of a gradient",
        case=r"TransformerEncoderLayer\(1,|LayerNorm\(1\)|\(1, 1,",
    ),
    Explained(
        "What is said of bfloat16 in LSTMs with projections (a warning) and in convolutions with a "
        "weight of another type (an error)",
        "depends on the processor: words of oneDNN with AVX-512, of its own kernels without",
        "oneDNN's",
        group=r"^(warnings|words of an error) \| .*(LSTM|[cC]onv)",
        case="bfloat16",
        detail=r"(with projections is not supported|should be a MKLDNN tensor).* for ",
    ),
    Explained(
        "Gradients of complex numbers: `silu`, `nan_to_num`, `slice_copy`, `slice_scatter`, "
        "`adaptive_avg_pool1d`",
        "RuntimeError: they were never tried there",
        "are there, and are those of `gradcheck`",
        group="^does not raise RuntimeError",
        case="(?i)silu|nan_to_num|slice_copy|slice_scatter|adaptive_?avg_?pool1d",
        detail="does not support automatic differentiation for outputs with complex dtype",
    ),
    Explained(
        "The type of a lazy layer's weights after pickling",
        "the default type: theirs is forgotten",
        "theirs",
        group=r"^(other value|dtype) \| (pickled|stored)$",
        case=r"Lazy.*\.(float|double|half|bfloat16|to)\(",
        detail=r"^(torch\.)?b?float\d\d for (torch\.)?b?float\d\d$",
    ),
    *CALLS,
    *SMALL_PRINT,
)


def explanation(finding: dict[str, Any]) -> Explained | None:
    """The first explanation that fits a finding."""
    return next((entry for entry in EXPLAINED if entry.fits(finding)), None)


def table(entries: Iterable[Explained] = EXPLAINED) -> str:
    """The entries as Markdown."""
    lines = ["| | PyTorch | flambeau |", "|---|---|---|"]
    lines += [f"| {entry.what} | {entry.torch} | {entry.flambeau} |" for entry in entries]
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


def counted(files: list[Path]) -> tuple[Counter[str], Counter[str]]:
    """How many findings each explanation has, and how many of each kind have none."""
    fitting: Counter[str] = Counter()
    left: Counter[str] = Counter()
    for file in files:
        for line in file.read_text("utf-8").splitlines():
            finding = json.loads(line)
            entry = explanation(finding)
            if entry is None:
                left[finding["group"]] += 1
            else:
                fitting[entry.what] += 1
    return fitting, left


def main(arguments: list[str]) -> int:
    """Count findings, or write the table; 1 if there are findings without explanation."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("findings", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true", help="write the table")
    words = parser.parse_args(arguments)
    if words.write:
        PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
    fitting, left = counted(words.findings)
    for title, counts in (("explained", fitting), ("without explanation", left)):
        print(f"{sum(counts.values())} {title}")
        for name, count in counts.most_common():
            print(f"  {count:5}  {name}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
