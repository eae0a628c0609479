"""Tensors on the device "meta" beside PyTorch's: what they are, and what is refused.

`FLAMBEAU_OPERATORS=400` sets how many operators of PyTorch's operator database are drawn:
results on "meta" are laid out as those on the CPU.
`conformance/opinfo/opinfo.py --layouts` runs all of them.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau
from tests.random_seeds import generator

SCRIPT = Path(__file__).with_name("opinfo") / "opinfo.py"
COUNT = int(os.environ.get("FLAMBEAU_OPERATORS", "12"))
SCENARIOS = """
repr(m(3, 4))
repr(m(3, 4, dtype=torch.bfloat16, requires_grad=True) * 2)
m(3).device, m(3).is_meta, m(3).is_cpu, m(3).type(), m(3).get_device()
m(3, 4).T.contiguous().stride(), m(3, 4)[:, 1:].storage_offset(), m(2, 3)[1].stride()
m(3, 4).untyped_storage().nbytes(), m(3, 4).untyped_storage().device, m(3).data_ptr()
str(m(3).untyped_storage())
repr(torch.ones(3).to("meta")), repr(torch.ones(3, dtype=torch.int8).to("meta", torch.float64))
repr(torch.tensor([1.0, 2.0], device="meta")), repr(torch.as_tensor([1], device="meta"))
repr(torch.arange(5, device="meta")), repr(torch.eye(3, device="meta")), repr(m(2).new_ones(3))
repr(torch.randperm(4, device="meta")), repr(torch.full((2,), True, device="meta"))
repr(torch.zeros_like(m(3), device="cpu")), repr(torch.empty_like(m(3, 4).T)), repr(m(2).zero_())
torch.TypedStorage(3, device="meta"), torch.UntypedStorage([1, 2], device="meta")
torch.TypedStorage([1, 2], device="meta", dtype=torch.int16).device
[f(m(3).storage()) for f in (len, str, lambda s: s.float(), lambda s: s.bool(), lambda s: s.type())]
m(3).storage().fill_(2), m(3).storage().clone(), m(3).storage().__setitem__(0, 1), m(3).storage()
m(3).storage()[0], m(0).storage()[0]
m(0).storage()[0]
format(m(())), f"{m(2)}"
f"{m(()):.2f}"
np.ones(3) + m(3)
m(3) + np.ones(3)
np.ones(3) - m(3)
np.ones(3) * m(3)
np.ones((3, 3)) @ m(3, 3)
np.ones(()) ** m(3)
np.ones(3) // m(3)
np.float64(2) * m(3)
m(3).storage().tolist()
m(3).storage().cpu()
m(3).storage().copy_(torch.ones(3).storage()), m(3).untyped_storage().clone()
torch.ones(3).storage().copy_(m(3).storage())
torch.ones(3).untyped_storage().copy_(m(3).untyped_storage())
m(3).untyped_storage()[0]
list(m(3).untyped_storage())
m(3).untyped_storage().new().device, m(3).untyped_storage().resize_(20).nbytes()
m(3).untyped_storage().pin_memory()
m(3).untyped_storage().share_memory_()
repr(m(0).set_(torch.UntypedStorage(16, device="meta")))
repr(m(0).set_(m(6).untyped_storage(), 1, (2, 2), (2, 1)))
m(0).set_(torch.ones(2).untyped_storage())
torch.ones(0).set_(m(2).untyped_storage())
torch.ones(0).set_(m(2))
m(1).item()
m(2).tolist()
m(2).numpy()
bool(m(1))
float(m(()))
m(2).cpu()
torch.ones(2).copy_(m(2))
torch.ones(2, 3) + m(2, 3)
m(2, 3) + torch.ones(2, 3)
repr(m(2, 3) + torch.tensor(1.0)), repr(torch.tensor(1.0) * m(2))
repr(torch.linspace(m(()), 3, 5)), repr(torch.logspace(m(()), m(()), 4))
torch.linspace(m(()), m(()), -5)
repr(torch.repeat_interleave(m(4, 1), long(4), 0, output_size=6))
repr(torch.repeat_interleave(long(3), output_size=8))
torch.repeat_interleave(m(4, 1), long(4), 0)
repr(torch.linalg.lu_solve(m(3, 3), torch.empty(3, device="meta", dtype=torch.int32), m(3, 4)))
m(2, 3).view(4)
m(2).pin_memory()
repr(m(2).uniform_()), repr(m(2).normal_()), repr(m(2).random_(3)), repr(torch.bernoulli(m(2)))
repr(m(5, 5).resize_(2, 2)), repr(m(3).set_(m(4)))
repr(copy.deepcopy(m(3, 4).T)), copy.deepcopy(m(3, 4).T).stride()
torch.nn.Linear(2, 3, device="meta").to("cpu")
repr(torch.nn.Linear(2, 3).to("meta").bias), repr(torch.nn.Parameter(m(2)))
torch.nn.Linear(2, 3, device="meta").to_empty(device="cpu").weight.shape
[x.shape for x in torch.nn.LSTM(3, 4, 2, device="meta")(m(5, 2, 3))[1]]
repr(torch.nn.TransformerEncoderLayer(8, 2, 16, device="meta")(m(5, 2, 8)))
torch.nn.utils.skip_init(torch.nn.Linear, 2, 3).weight.shape
torch.device("meta", 0), torch.empty(2, device="meta:0").device
repr(torch.linalg.svd(m(3, 2))), repr(torch.linalg.solve(m(3, 3), m(3)))
repr(m(4).sort()), repr(m(4).topk(2)), repr(m(3, 4).max(1)), repr(torch.cat([m(2), m(3)]))
repr(torch.nn.functional.conv2d(m(2, 3, 8, 8).to(memory_format=torch.channels_last), m(4, 3, 3, 3)))
grads(lambda x: torch.nn.functional.gelu(x).softmax(-1).square().sum(), m(3, 4))
grads(lambda x: x[0].clone().mul_(x[1]).sum(), m(2, 3))
""".strip().split("\n")  # noqa: E501


def observed(scenario: str, library: Any) -> Any:
    def meta(*shape: Any, **words: Any) -> Any:
        return library.empty(*shape, device="meta", **words)

    def grads(function: Any, x: Any) -> Any:
        x.requires_grad_()
        function(x).backward()
        return repr(x.grad), x.grad.stride()

    scope = {
        "torch": library,
        "np": np,
        "m": meta,
        "copy": copy,
        "grads": grads,
        "long": lambda *shape: meta(*shape, dtype=library.int64),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return str(eval(scenario, scope))
        except Exception as error:  # noqa: BLE001  # whatever a library refuses
            return type(error).__name__, str(error).split("\n")[0]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenarios(scenario: str) -> None:
    want, got = observed(scenario, reference), observed(scenario, flambeau)
    gc.collect()
    assert got == want


def test_drawn_operators_give_results_laid_out_as_on_the_cpu(tmp_path: Path) -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    names = sorted({op.name for op in op_db})
    drawn = generator("meta").sample(names, min(COUNT, len(names)))
    wanted = "|".join(map(re.escape, drawn))
    result = tmp_path / "result.json"
    command = [sys.executable, str(SCRIPT), "--impl", "flambeau", "--layouts", "--only", "layouts"]
    command += ["--ops", f"({wanted})( .*)?$", "--limit-samples", "6", "--out", str(result)]
    subprocess.run(command, check=True, timeout=900, cwd=SCRIPT.parent, capture_output=True)
    failures = [
        (entry["name"], entry["categories"]["layouts"]["failure"])
        for entry in json.loads(result.read_text())["results"]
        if entry["categories"]["layouts"]["status"] not in ("pass", "skipped")
    ]
    assert not failures
