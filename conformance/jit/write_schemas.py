"""Write flambeau/jit/operators/schemas.txt: the operators of PyTorch that flambeau can run, as far
as rows do not imply them; and flambeau/library/absent_operators.txt: those of ATen that `torch.ops`
shows, and that it cannot.

    python conformance/jit/write_schemas.py

A name is taken if one of its overloads has an implementation (`flambeau.jit.operators.calls`), with
all of its overloads, since the choice among them is part of what programs mean; but never what
reaches files, networks or Python objects, or belongs to another backend.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

REFUSED_NAMES = re.compile(
    r"aten::(save|from_file|record_stream|_print|_foobar|_test_|_fused_|_amp_|_nested_(?!tensor_from_mask)|_cudnn"
    r"|_cufft|_sparse_semi|_mps|mps_|miopen|mkldnn|cudnn|fbgemm|quantize|_quantized|q_|to_mkldnn|_mkldnn"
    r"|_test|_flash|_efficient_attention|_triton|_philox|_lstm_mps|_thnn_fused|owner|is_owner|to_here"
    r"|local_value|confirmed_by_owner|_make_dep|data_ptr|_scaled_|_weight_int|fake_quant"
    r"|_has_compat|_get_tracing|_propagate_xla|_wrapped|_dyn_quant|_convert_weight|_mixed_dtypes)"
    r"|prim::(rpc_|Python|Ignored|BailOut|Bailout|Guard|Fallback|TypeCheck|Fusion|MKLDNN|mkldnn"
    r"|profile|AddStat|awaitable|Static|Differentiable|TensorExpr|oneDNN|MMTree|MMBatch|Fused"
    r"|ConstantMKLDNN|CudaFusion|RequiresGradCheck|Chunk|VarStack|VarConcat|Autograd|Broadcast|Reduction)"
)
REFUSED_TYPES = re.compile(
    r"Dimname|Storage|Stream|QScheme|RRef|Await|__torch__|Capsule|ConstQuantizer"
)


def has_implementation(text: str) -> bool:
    """Whether flambeau can run a schema: by an operator, or written out by `run`."""
    from flambeau.jit.operators import calls, table
    from flambeau.jit.run.node_text import NODES

    schema = table.schema(text)
    return schema.name in NODES or calls.find(schema) is not None


def schemas(name: str) -> list[str]:
    """The schemas of a name that may stand in the table."""
    found = [str(s) for s in torch._C._jit_get_schemas_for_operator(name)]
    return [text for text in found if not REFUSED_TYPES.search(text)]


def lines_of(name: str, texts: list[str], plain: list[str]) -> list[str]:
    """What the file says of an operator: nothing if rows imply just these overloads.

    `plain`: the overloads of the operator that it may be the in-place form of.
    """
    from flambeau.jit.operators import derived, implied

    known = implied.schemas(name)
    if texts == [*known.values()]:
        return []
    lines: list[str] = []
    for place, text in enumerate(texts):
        head = text.partition("(")[0]
        if text != (known.get(head) or derived.named(head, plain, texts[:place])):
            lines.append(text)
        elif lines:
            lines[-1] += f"; {head.removeprefix(name)}" if "." in head else f"; {head}"
        else:
            lines.append(head)
    return lines


def main() -> None:
    """Write the file."""
    from flambeau.jit.operators import implied
    from flambeau.jit.operators.table import FILE

    names = {s.name for s in torch._C._jit_get_all_schemas()}
    kept: dict[str, list[str]] = {}
    for name in sorted(n for n in names if n.startswith(("aten::", "prim::"))):
        texts = [] if REFUSED_NAMES.match(name) else schemas(name)
        if any(map(has_implementation, texts)):
            kept[name] = texts
    lines = [line for name, texts in kept.items()
             for line in lines_of(name, texts, kept.get(name.removesuffix("_"), []))]  # fmt: skip
    lines += [f"-{name}" for name in sorted({*implied.names()} - {*kept})]
    FILE.write_text("\n".join(lines) + "\n", "utf-8")
    there = {text for texts in kept.values() for text in texts}
    absent = sorted(filter(_is_readable, {str(s) for s in torch._C._jit_get_all_schemas()} - there))
    ABSENT.write_text("\n".join(absent) + "\n", "utf-8")
    print(f"{len(there)} schemas, {len(lines)} lines; of ATen, {len(absent)} absent")


ABSENT = Path(__file__).parents[2] / "flambeau" / "library" / "absent_operators.txt"


def _is_readable(text: str) -> bool:
    """Whether an operator of ATen can be shown by its schema."""
    from flambeau.jit.operators import table

    try:
        return text.startswith("aten::") and bool(table.schema(text))
    except ValueError:
        return False


if __name__ == "__main__":
    main()
