"""Calls written by hand, for functions whose arguments can't be drawn: files, hooks, modes.

A program is Python in which `VALUE` stands for the parameter's value; what it leaves in `r` and in
its tensors is compared. It may import what does not belong to PyTorch.
"""

from __future__ import annotations

from .program import FORMATS, LAYOUTS, MODEL, PLACES, SWITCH, Program
from .program_files import ON_FILES
from .program_modules import ON_MODULES

X = "x = torch.arange(24.0).reshape(1, 2, 3, 4).clone()\n"
MATRIX = "x = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])\n"
SPARSE = MATRIX + "s = x.to_sparse()\n"
GROWS = "x = torch.arange(1.0, 4.0, requires_grad=True)\ny = (x * x).sum()\n"


def _factories() -> list[Program]:
    """Options of what makes tensors."""
    calls = {
        "zeros": "(2, 3)", "ones": "(2, 3)", "empty": "(2, 3)", "full": "(2, 3), 1.5",
        "rand": "2, 3", "randn": "2, 3", "randint": "0, 9, (2, 3)", "randperm": "4",
        "arange": "4", "linspace": "0, 1, 3", "logspace": "0, 1, 3", "eye": "3",
        "zeros_like": "x", "ones_like": "x", "empty_like": "x", "full_like": "x, 2.0",
        "rand_like": "x", "randn_like": "x", "randint_like": "x, 9",
        "tril_indices": "3, 3", "triu_indices": "3, 3", "scalar_tensor": "1.5",
        "hann_window": "4", "hamming_window": "4", "kaiser_window": "4", "bartlett_window": "4",
        "blackman_window": "4", "fft.fftfreq": "4", "fft.rfftfreq": "4", "range": "0, 3",
        "empty_strided": "(2, 3), (3, 1)", "empty_permuted": "(2, 3), (1, 0)",
        "normal": "0.0, 1.0, (2, 3)", "signal.windows.hann": "4",
    }  # fmt: skip
    found = []
    for name, given in calls.items():
        head = "x = torch.ones(1, 2, 3, 4).permute(0, 2, 3, 1)\n"
        look = "r.dtype, tuple(r.shape), str(r.layout), r.requires_grad"
        if not name.startswith("empty"):
            look += ", r.to_dense() if r.layout != torch.strided else r"
        for option, values in OPTIONS.items():
            if not _takes(name, option):
                continue
            text = f"{head}r = torch.{name}({given}, {option}=VALUE)\nr = ({look})\n"
            found.append(Program(f"torch.{name}", option, values, text))
    return found


def _takes(name: str, option: str) -> bool:
    """Whether a function has an option that not all have."""
    if option == "memory_format":
        return name.endswith("_like")
    return option != "generator" or name.startswith(("rand", "normal"))


OPTIONS = {
    "dtype": ("torch.float32", "torch.float64", "torch.int64", "torch.float16"),
    "layout": (*LAYOUTS, "None"),
    "device": PLACES,
    "requires_grad": SWITCH,
    "generator": ("torch.Generator().manual_seed(3)", "torch.Generator().manual_seed(4)"),
    "memory_format": FORMATS,
}


def _new_factories() -> list[Program]:
    calls = {
        "new_zeros": "(2, 3)", "new_ones": "(2, 3)", "new_empty": "(2, 3)",
        "new_full": "(2, 3), 1.5", "new_tensor": "[1.0, 2.0]",
        "new_empty_strided": "(2, 3), (3, 1)",
    }  # fmt: skip
    found = []
    for name, given in calls.items():
        look = "(r.dtype, tuple(r.shape), str(r.layout), r.requires_grad)"
        for option in ("dtype", "layout", "device", "requires_grad"):
            text = f"x = torch.ones(2)\nr = x.{name}({given}, {option}=VALUE)\nr = {look}\n"
            found.append(Program(f"torch.Tensor.{name}", option, OPTIONS[option], text))
    return found


def _conversions() -> list[Program]:
    """`memory_format=`, `copy=`, `non_blocking=` and `device=` of what converts."""
    calls = (
        "to(torch.float32, ", "to(torch.float64, ", "to('cpu', ", "to(x.double(), ", "float(",
        "double(", "half(", "bfloat16(", "long(", "int(", "short(", "char(", "byte(", "bool(",
        "cfloat(", "cdouble(", "cpu(", "clone(", "contiguous(", "type(torch.float64, ",
    )  # fmt: skip
    options = {"memory_format": FORMATS, "copy": SWITCH, "non_blocking": SWITCH}
    found = []
    for call in calls:
        path = f"torch.Tensor.{call.partition('(')[0]}"
        for option, values in options.items():
            if option != "memory_format" and not call.startswith("to("):
                continue
            text = f"{X}x = x.permute(0, 3, 1, 2)\nr = x.{call}{option}=VALUE)\n"
            found.append(Program(path, option, values, text))
    return found


PROGRAMS: tuple[Program, ...] = (
    *_factories(), *_new_factories(), *_conversions(), *ON_FILES, *ON_MODULES,
    # ---- sparse and other layouts
    Program("torch.Tensor.to_sparse", "layout", (*LAYOUTS, "torch.sparse_csc", "None"),
            MATRIX + "r = x.to_sparse(layout=VALUE)\nr = (str(r.layout), r.to_dense())\n"),
    Program("torch.Tensor.to_sparse", "blocksize", ("None", "(1, 1)"),
            MATRIX + "r = x.to_sparse(blocksize=VALUE)\nr = str(r.layout)\n"),
    Program("torch.Tensor.to_sparse", "blocksize", ("None", "(1, 1)"),
            SPARSE + "r = s.to_sparse(blocksize=VALUE)\nr = str(r.layout)\n"),
    Program("torch.Tensor.to_sparse", "dense_dim", ("None", "0", "1"),
            MATRIX + "r = x.to_sparse(dense_dim=VALUE)\nr = str(r.layout)\n"),
    Program("torch.Tensor.to_sparse", "dense_dim", ("None", "0", "1"),
            SPARSE + "r = s.to_sparse(dense_dim=VALUE)\nr = str(r.layout)\n"),
    Program("torch.Tensor.to_dense", "masked_grad", ("None", "True", "False"),
            MATRIX + "s = x.to_sparse().requires_grad_()\n"
            "s.to_dense(masked_grad=VALUE).sum().backward()\n"
            "r = (str(s.grad.layout), s.grad.to_dense())\n"),
    Program("torch.Tensor.to_dense", "dtype", ("None", "torch.float64", "torch.int64"),
            SPARSE + "r = s.to_dense(dtype=VALUE)\n"),
    Program("torch.Tensor.to_dense", "masked_grad", ("None", "True", "False"),
            MATRIX + "r = x.to_dense(masked_grad=VALUE)\n"),
    Program("torch.sparse_coo_tensor", "is_coalesced", ("None", "True", "False"),
            "r = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), is_coalesced=VALUE)\n"
            "r = (r.is_coalesced(), r.to_dense())\n"),
    Program("torch.sparse_coo_tensor", "check_invariants", ("None", "True", "False"),
            "r = torch.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,), check_invariants=VALUE)"
            "._nnz()\n"),
    Program("torch.sparse_coo_tensor", "dtype", ("None", "torch.float64", "torch.int64"),
            "r = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), dtype=VALUE).to_dense()\n"),
    Program("torch.sparse_coo_tensor", "device", PLACES,
            "r = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), device=VALUE).to_dense()\n"),
    Program("torch.sparse_coo_tensor", "requires_grad", SWITCH,
            "r = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), requires_grad=VALUE)\n"
            "r = r.requires_grad\n"),
    Program("torch.sparse.sum", "dtype", ("None", "torch.float64"),
            SPARSE + "r = torch.sparse.sum(s, dtype=VALUE)\n"),
    Program("torch.sparse.sum", "dim", ("None", "0", "1"),
            SPARSE + "r = torch.sparse.sum(s, dim=VALUE).to_dense()\n"),
    Program("torch.sparse.softmax", "dtype", ("None", "torch.float64"),
            SPARSE + "r = torch.sparse.softmax(s, 1, dtype=VALUE).to_dense()\n"),
    Program("torch.sparse.log_softmax", "dtype", ("None", "torch.float64"),
            SPARSE + "r = torch.sparse.log_softmax(s, 1, dtype=VALUE).to_dense()\n"),
    Program("torch.sparse.mm", "reduce", ("'sum'", "'mean'", "'amax'"),
            SPARSE + "r = torch.sparse.mm(s, torch.ones(3, 2), VALUE)\n"),
    Program("torch.sparse.addmm", "beta", ("1", "2"),
            SPARSE + "r = torch.sparse.addmm(torch.ones(2, 2), s, torch.ones(3, 2), beta=VALUE)\n"),
    Program("torch.sparse.addmm", "alpha", ("1", "2"),
            SPARSE + "r = torch.sparse.addmm(torch.ones(2, 2), s, torch.ones(3, 2), "
            "alpha=VALUE)\n"),
    Program("torch.Tensor.copy_", "non_blocking", SWITCH,
            SPARSE + "z = (s * 0).copy_(s, non_blocking=VALUE)\nr = z.to_dense()\n"),
    # ---- tensors
    Program("torch.tensor", "device", PLACES, "r = torch.tensor([1.0], device=VALUE)\n"),
    Program("torch.tensor", "dtype", ("None", "torch.float64"),
            "r = torch.tensor([1.0], dtype=VALUE)\n"),
    Program("torch.tensor", "requires_grad", SWITCH,
            "r = torch.tensor([1.0], requires_grad=VALUE)\n"),
    Program("torch.asarray", "copy", ("None", "True", "False"),
            "x = torch.arange(3.0)\nr = torch.asarray(x, copy=VALUE)\n"),
    Program("torch.asarray", "copy", ("None", "True", "False"),
            "a = np.arange(3.0)\nr = torch.asarray(a, copy=VALUE)\nr[0] = 7\nb = a.tolist()\n"),
    Program("torch.asarray", "copy", ("None", "True", "False"),
            "r = torch.asarray([1.0, 2.0], copy=VALUE)\n"),
    Program("torch.asarray", "copy", ("None", "True", "False"),
            "x = torch.arange(3.0)\nr = torch.asarray(x, dtype=torch.float64, copy=VALUE)\n"),
    Program("torch.asarray", "requires_grad", SWITCH,
            "x = torch.arange(3.0, requires_grad=True) * 1\n"
            "r = torch.asarray(x, requires_grad=VALUE)\n"),
    Program("torch.asarray", "device", PLACES, "r = torch.asarray([1.0], device=VALUE)\n"),
    Program("torch.as_tensor", "device", PLACES, "r = torch.as_tensor([1.0], device=VALUE)\n"),
    Program("torch.as_tensor", "dtype", ("None", "torch.float64"),
            "x = torch.arange(3.0)\nr = torch.as_tensor(x, dtype=VALUE)\n"),
    Program("torch.frombuffer", "count", ("-1", "1", "2"),
            "b = bytearray(range(16))\nr = torch.frombuffer(b, dtype=torch.int32, count=VALUE)\n"),
    Program("torch.frombuffer", "offset", ("0", "4", "1"),
            "b = bytearray(range(16))\nr = torch.frombuffer(b, dtype=torch.int16, offset=VALUE)\n"),
    Program("torch.frombuffer", "requires_grad", SWITCH,
            "b = bytearray(range(16))\n"
            "r = torch.frombuffer(b, dtype=torch.float16, requires_grad=VALUE)\n"),
    Program("torch.from_dlpack", "device", ("None", "'cpu'", "'cuda'"),
            "x = torch.arange(3.0)\nr = torch.from_dlpack(x, device=VALUE)\n"),
    Program("torch.from_dlpack", "copy", ("None", "True", "False"),
            "x = torch.arange(3.0)\nr = torch.from_dlpack(x, copy=VALUE)\n"),
    Program("torch.Tensor.__dlpack__", "copy", ("None", "True", "False"),
            "x = torch.arange(3.0)\nr = torch.from_dlpack(x.__dlpack__(copy=VALUE))\n"),
    Program("torch.Tensor.__dlpack__", "dl_device", ("None", "(1, 0)", "(2, 0)"),
            "x = torch.arange(3.0)\nr = torch.from_dlpack(x.__dlpack__(dl_device=VALUE))\n"),
    Program("torch.Tensor.__dlpack__", "max_version", ("None", "(1, 0)"),
            "x = torch.arange(3.0)\nr = repr(x.__dlpack__(max_version=VALUE)).split()[2]\n"),
    Program("torch.Tensor.__dlpack__", "stream", ("None", "-1", "1", "2"),
            "x = torch.arange(3.0)\nr = torch.from_dlpack(x.__dlpack__(stream=VALUE))\n"),
    Program("torch.Tensor.numpy", "force", SWITCH,
            "x = torch.arange(3.0, requires_grad=True)\nr = x.numpy(force=VALUE).tolist()\n"),
    Program("torch.Tensor.requires_grad_", "requires_grad", SWITCH,
            "x = torch.arange(3.0)\nr = x.requires_grad_(VALUE)\n"),
    Program("torch.Tensor.backward", "retain_graph", ("None", "False", "True"),
            GROWS + "y.backward(retain_graph=VALUE)\ny.backward()\nr = x.grad\n"),
    Program("torch.Tensor.backward", "create_graph", SWITCH,
            GROWS + "y.backward(create_graph=VALUE)\nr = x.grad\n"),
    Program("torch.Tensor.backward", "inputs", ("None", "[]", "[x]", "[z]"),
            "x = torch.ones(2, requires_grad=True)\nz = torch.ones(2, requires_grad=True)\n"
            "(x * z).sum().backward(inputs=VALUE)\nr = (x.grad, z.grad)\n"),
    Program("torch.Tensor.type", "non_blocking", SWITCH,
            "x = torch.arange(3.0)\nr = x.type(torch.float64, non_blocking=VALUE)\n"),
    Program("torch.Tensor.type", "kwargs", ("async", "nope"),
            "x = torch.arange(3.0)\nr = x.type(torch.float64, **{'VALUE': True})\n"),
    Program("torch.Tensor.is_pinned", "device", ("None", "'cuda'", "'cpu'", "'nope'", "3"),
            "x = torch.arange(3.0)\nr = x.is_pinned(VALUE)\n"),
    Program("torch.Tensor.pin_memory", "device", ("None", "'cuda'", "'nope'"),
            "x = torch.arange(3.0)\nr = x.pin_memory(VALUE)\n"),
    Program("torch.Tensor.share_memory_", "self", ("x", "x[1:]"),
            "x = torch.arange(3.0)\nVALUE.share_memory_()\nr = x.is_shared()\n"),
    Program("torch.Tensor.index_put_", "accumulate", SWITCH,
            "x = torch.zeros(3)\nr = x.index_put_((torch.tensor([0, 0]),), torch.ones(2), "
            "accumulate=VALUE)\n"),
    Program("torch.Tensor.gather", "sparse_grad", SWITCH,
            "x = torch.ones(3, requires_grad=True)\n"
            "x.gather(0, torch.tensor([0, 0]), sparse_grad=VALUE).sum().backward()\n"
            "r = str(x.grad.layout)\n"),
    Program("torch.Tensor.expand", "implicit", SWITCH,
            "x = torch.ones(3, 1)\nr = x.expand((3, 2), implicit=VALUE)\n"),
    Program("torch.Tensor.resize_", "memory_format", FORMATS,
            "x = torch.ones(48)\nr = x.resize_((1, 4, 3, 4), memory_format=VALUE)\n"),
    Program("torch.Tensor.resize_as_", "memory_format", FORMATS,
            "x = torch.ones(48)\nr = x.resize_as_(torch.ones(1, 4, 3, 4), memory_format=VALUE)\n"),
    Program("torch.Tensor.is_contiguous", "memory_format", FORMATS,
            "x = torch.ones(1, 4, 3, 4)\nr = x.is_contiguous(memory_format=VALUE)\n"),
    Program("torch.Tensor.dim_order", "ambiguity_check",
            (*SWITCH, "[torch.contiguous_format]", "[torch.channels_last]", "'nope'"),
            "x = torch.ones(1, 4, 1, 4)\nr = x.dim_order(ambiguity_check=VALUE)\n"),
    Program("torch.Tensor.bernoulli_", "generator", OPTIONS["generator"],
            "r = torch.zeros(9).bernoulli_(0.5, generator=VALUE)\n"),
    Program("torch.Tensor.map_", "callable", ("lambda a, b: a + b", "lambda a, b: a - b"),
            "x = torch.ones(3)\nr = x.map_(torch.ones(3), VALUE)\n"),
    Program("torch.rrelu", "generator", OPTIONS["generator"],
            "r = torch.rrelu(-torch.ones(9), training=True, generator=VALUE)\n"),
    # ---- autograd
    Program("torch.autograd.backward", "grad_variables", ("None", "[torch.tensor(2.0)]"),
            GROWS + "torch.autograd.backward([y], grad_variables=VALUE)\nr = x.grad\n"),
    Program("torch.autograd.grad", "only_inputs", ("True", "False"),
            GROWS + "r = torch.autograd.grad(y, x, only_inputs=VALUE)\n"),
    Program("torch.autograd.grad", "is_grads_batched", SWITCH,
            "x = torch.arange(1.0, 4.0, requires_grad=True)\n"
            "r = torch.autograd.grad(x * x, x, torch.ones(3), is_grads_batched=VALUE)\n"),
    Program("torch.autograd.grad", "materialize_grads", SWITCH,
            GROWS + "z = torch.ones(2, requires_grad=True)\n"
            "r = torch.autograd.grad(y, [z], allow_unused=None, materialize_grads=VALUE)\n"),
    Program("torch.autograd.grad", "allow_unused", ("None", "True", "False"),
            GROWS + "z = torch.ones(2, requires_grad=True)\n"
            "r = torch.autograd.grad(y, [z], allow_unused=VALUE)\n"),
    Program("torch.autograd.functional.jacobian", "vectorize", SWITCH,
            "r = torch.autograd.functional.jacobian(lambda x: torch.tensor(x.tolist()) + x, "
            "torch.ones(2), vectorize=VALUE)\n"),
    Program("torch.autograd.functional.jacobian", "strict", SWITCH,
            "r = torch.autograd.functional.jacobian(lambda x: torch.ones(2), "
            "torch.ones(2), strict=VALUE)\n"),
    Program("torch.autograd.functional.jacobian", "strategy",
            ("'reverse-mode'", "'forward-mode'", "'nope'"),
            "r = torch.autograd.functional.jacobian(lambda x: x * x, torch.ones(2), "
            "strategy=VALUE)\n"),
    Program("torch.autograd.functional.jacobian", "create_graph", SWITCH,
            "r = torch.autograd.functional.jacobian(lambda x: x * x, torch.ones(2), "
            "create_graph=VALUE)\n"),
    Program("torch.autograd.functional.hessian", "outer_jacobian_strategy",
            ("'reverse-mode'", "'forward-mode'", "'nope'"),
            "r = torch.autograd.functional.hessian(lambda x: (x * x).sum(), torch.ones(2), "
            "outer_jacobian_strategy=VALUE)\n"),
    Program("torch.autograd.functional.hessian", "vectorize", SWITCH,
            "r = torch.autograd.functional.hessian("
            "lambda x: (torch.tensor(x.tolist()) * x).sum(), torch.ones(2), vectorize=VALUE)\n"),
    *[Program(f"torch.autograd.functional.{name}", option, SWITCH,
              f"r = torch.autograd.functional.{name}(lambda x: (x * x).sum(){body}, torch.ones(2)"
              f"{given}, {option}=VALUE)\n")
      for name, given in (("vjp", ""), ("jvp", ", torch.ones(2)"), ("vhp", ", torch.ones(2)"),
                          ("hvp", ", torch.ones(2)"), ("hessian", ""))
      for option, body in (("create_graph", ""), ("strict", ".detach()"))],
    Program("torch.autograd.set_detect_anomaly", "check_nan", SWITCH,
            "x = torch.zeros(1, requires_grad=True)\n"
            "with torch.autograd.set_detect_anomaly(True, check_nan=VALUE):\n"
            "    (x / x).sum().backward()\nr = x.grad\n"),
    Program("torch.autograd.detect_anomaly", "check_nan", SWITCH,
            "x = torch.zeros(1, requires_grad=True)\n"
            "with torch.autograd.detect_anomaly(VALUE):\n"
            "    (x / x).sum().backward()\nr = x.grad\n"),
    Program("torch.autograd.graph.save_on_cpu", "device_type", ("'cuda'", "'cpu'", "'nope'"),
            "x = torch.ones(2, requires_grad=True)\n"
            "with torch.autograd.graph.save_on_cpu(pin_memory=True, device_type=VALUE):\n"
            "    (x * x).sum().backward()\nr = x.grad\n"),
    Program("torch.autograd.graph.save_on_cpu", "pin_memory", SWITCH,
            "x = torch.ones(2, requires_grad=True)\n"
            "with torch.autograd.graph.save_on_cpu(pin_memory=VALUE):\n"
            "    (x * x).sum().backward()\nr = x.grad\n"),
    Program("torch.autograd.graph.register_multi_grad_hook", "mode", ("'all'", "'any'"),
            "a = torch.ones(1, requires_grad=True)\nb = torch.ones(1, requires_grad=True)\n"
            "seen = []\nh = torch.autograd.graph.register_multi_grad_hook((a, b), "
            "lambda g: seen.append(len(g)), mode=VALUE)\n(a * b).sum().backward()\n"),
    Program("torch.autograd.Function.__init__", "args", ("", "1"),
            "r = type(torch.autograd.Function(VALUE)).__name__\n"),
    Program("torch.autograd.Variable", "volatile", ("None", "True", "False"),
            "r = torch.autograd.Variable(torch.ones(2), volatile=VALUE)\n"),
    Program("torch.autograd.Variable", "requires_grad", ("None", "True", "False"),
            "r = torch.autograd.Variable(torch.ones(2), requires_grad=VALUE)\n"),
    # ---- amp, random, hub, testing, func, utils
    Program("torch.amp.autocast", "cache_enabled", ("None", *SWITCH),
            "w = torch.ones(2, 2, requires_grad=True)\n"
            "with torch.amp.autocast('cpu', cache_enabled=VALUE):\n"
            "    r = torch.is_autocast_cache_enabled()\n"),
    Program("torch.amp.autocast", "dtype", ("None", "torch.float16", "torch.bfloat16",
                                            "torch.float64"),
            "with torch.amp.autocast('cpu', dtype=VALUE):\n"
            "    r = torch.ones(2, 2).mm(torch.ones(2, 2))\n"),
    Program("torch.amp.autocast", "device_type", ("'cpu'", "'cuda'", "'nope'", "'mps'", "'xpu'"),
            "with torch.amp.autocast(VALUE):\n    r = torch.ones(2, 2).mm(torch.ones(2, 2))\n"),
    Program("torch.amp.GradScaler", "device", ("'cpu'", "'cuda'", "'nope'"),
            "r = torch.amp.GradScaler(VALUE)\nr = (r.is_enabled(), r.get_scale())\n"),
    Program("torch.amp.custom_fwd", "cast_inputs", ("None", "torch.float64"),
            "class C(torch.autograd.Function):\n    @staticmethod\n"
            "    @torch.amp.custom_fwd(device_type='cpu', cast_inputs=VALUE)\n"
            "    def forward(ctx, x):\n        return x * 2\n    @staticmethod\n"
            "    @torch.amp.custom_bwd(device_type='cpu')\n    def backward(ctx, g):\n"
            "        return g\nwith torch.amp.autocast('cpu'):\n    r = C.apply(torch.ones(2))\n"
            "C = 0\n"),
    Program("torch.random.fork_rng", "enabled", SWITCH,
            "torch.manual_seed(1)\nwith torch.random.fork_rng(enabled=VALUE):\n    torch.rand(3)\n"
            "r = torch.rand(2)\n"),
    Program("torch.random.fork_rng", "devices", ("None", "[]", "[0]", "['cuda:0']", "3"),
            "with torch.random.fork_rng(devices=VALUE):\n    torch.rand(3)\nr = torch.rand(2)\n"),
    Program("torch.random.fork_rng", "device_type", ("'cuda'", "'cpu'", "'nope'", "'meta'"),
            "with torch.random.fork_rng(device_type=VALUE):\n    torch.rand(3)\nr = 1\n"),
    Program("torch.Generator", "device", ("'cpu'", "'cuda'", "'nope'"),
            "r = str(torch.Generator(device=VALUE).device)\n"),
    *[Program("torch.testing.assert_close", option, values,
              f"import math\nr = torch.testing.assert_close({given}, {option}=VALUE)\n")
      for option, values, given in (
          ("allow_subclasses", SWITCH, "torch.nn.Parameter(torch.ones(2), False), torch.ones(2)"),
          ("equal_nan", SWITCH, "torch.tensor([math.nan]), torch.tensor([math.nan])"),
          ("check_device", SWITCH, "torch.ones(2), torch.ones(2)"),
          ("check_dtype", SWITCH, "torch.ones(2), torch.ones(2).double()"),
          ("check_stride", SWITCH, "torch.ones(2, 3), torch.ones(3, 2).t()"),
          ("check_layout", SWITCH, "torch.ones(2), torch.ones(2).to_sparse()"),
          ("msg", ("None", "'mine'", "lambda s: 'mine ' + s"), "torch.ones(2), torch.zeros(2)"))],
    *[Program("torch.testing.make_tensor", option, values,
              f"r = torch.testing.make_tensor((2, 3), dtype=torch.float32, device='cpu', "
              f"{option}=VALUE)\n")
      for option, values in (("low", ("None", "5")), ("requires_grad", SWITCH),
                             ("noncontiguous", SWITCH), ("exclude_zero", SWITCH))],
    Program("torch.testing.make_tensor", "memory_format", FORMATS,
            "r = torch.testing.make_tensor((1, 2, 3, 4), dtype=torch.float32, device='cpu', "
            "memory_format=VALUE)\n"),
    Program("torch.func.functional_call", "tie_weights", SWITCH,
            "m = torch.nn.Module()\nm.a = torch.nn.Parameter(torch.ones(1))\nm.b = m.a\n"
            "m.forward = lambda x: m.a + m.b * x\n"
            "r = torch.func.functional_call(m, {'a': torch.tensor([5.0])}, torch.ones(1), "
            "tie_weights=VALUE)\nm = 0\n"),
    Program("torch.func.functional_call", "strict", SWITCH,
            MODEL + "r = torch.func.functional_call(m, {'0.bias': torch.zeros(2)}, "
            "torch.ones(2, 3), strict=VALUE)\n"),
    Program("torch.overrides.get_ignored_functions", "x", ("", "1"),
            "r = len(torch.overrides.get_ignored_functions(VALUE)) > 10\n"),
    Program("torch.utils.dlpack.from_dlpack", "device", ("None", "'cpu'", "'cuda'"),
            "x = torch.arange(3.0)\nr = torch.utils.dlpack.from_dlpack(x, device=VALUE)\n"),
    Program("torch.set_printoptions", "sci_mode", ("None", *SWITCH),
            "torch.set_printoptions(sci_mode=VALUE)\nr = repr(torch.tensor([1.0, 1e5]))\n"
            "torch.set_printoptions(profile='default')\n"),
    *[Program("torch.set_printoptions", option, values,
              f"torch.set_printoptions({option}=VALUE)\nr = repr(torch.arange(2000.0) / 7)\n"
              "torch.set_printoptions(profile='default')\n")
      for option, values in (("precision", ("None", "2")), ("threshold", ("None", "9999")),
                             ("edgeitems", ("None", "1")), ("linewidth", ("None", "40")),
                             ("profile", ("None", "'short'", "'full'")))],
    # ---- without a GPU
    *[Program(f"torch.cuda.{name}", "device", ("None", "0", "'cpu'", "'cuda:0'", "'nope'"),
              f"r = torch.cuda.{name}(VALUE)\nr = r if isinstance(r, int) else str(type(r))\n")
      for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "memory_stats",
                   "max_memory_reserved", "memory_cached", "max_memory_cached", "synchronize",
                   "reset_peak_memory_stats", "reset_accumulated_memory_stats", "device",
                   "current_stream", "default_stream", "get_device_name", "mem_get_info",
                   "get_device_capability", "get_rng_state", "manual_seed", "set_device",
                   "memory_summary", "memory_snapshot", "device_of", "stream",
                   "get_device_properties",
                   "reset_max_memory_allocated", "reset_max_memory_cached", "utilization",
                   "can_device_access_peer", "is_bf16_supported", "seed", "initial_seed")],
    *[Program(f"torch.cpu.{name}", "device", ("None", "0", "'cpu'", "'cuda:0'", "'nope'"),
              f"r = torch.cpu.{name}(VALUE)\nr = str(type(r))\n")
      for name in ("synchronize", "current_stream", "stream", "set_device")],
    # ---- modules
    Program("torch.nn.Module.to", "non_blocking", SWITCH,
            "m = torch.nn.Linear(2, 2)\nr = m.to('cpu', non_blocking=VALUE).weight\n"),
    Program("torch.nn.Module.to", "memory_format", FORMATS,
            "m = torch.nn.Conv2d(2, 2, 3)\nr = m.to(memory_format=VALUE).weight\n"),
    Program("torch.nn.Module.to_empty", "recurse", SWITCH,
            MODEL + "w = m[0].weight\nm.to_empty(device='cpu', recurse=VALUE)\n"
            "r = w is m[0].weight, w.data_ptr() == m[0].weight.data_ptr()\nw = m = 0\n"),
    Program("torch.nn.Module.load_state_dict", "assign", SWITCH,
            MODEL + "d = {k: v.clone() for k, v in m.state_dict().items()}\n"
            "m.load_state_dict(d, assign=VALUE)\n"
            "r = m[0].weight.data_ptr() == d['0.weight'].data_ptr()\n"),
    Program("torch.nn.Module.register_full_backward_hook", "prepend", SWITCH,
            "m = torch.nn.Linear(2, 2)\nseen = []\n"
            "m.register_full_backward_hook(lambda *a: seen.append(1))\n"
            "m.register_full_backward_hook(lambda *a: seen.append(2), prepend=VALUE)\n"
            "m(torch.ones(1, 2)).sum().backward()\nm = 0\n"),
    Program("torch.nn.DataParallel", "device_ids", ("None", "[0]", "[]"),
            "r = torch.nn.DataParallel(torch.nn.Linear(2, 2), device_ids=VALUE).device_ids\n"),
    Program("torch.nn.utils.rnn.PackedSequence.cpu", "args", ("", "True", "1, 2, 3", "nope=1"),
            "p = torch.nn.utils.rnn.pack_sequence([torch.ones(2)])\n"
            "r = p.cpu(VALUE).data\np = 0\n"),
    *[Program(f"torch.nn.functional.{name}", "return_indices", SWITCH,
              f"r = F.{name}(torch.arange(16.0).reshape(1, 1, 4, 4), {given}, "
              "return_indices=VALUE)\n")
      for name, given in (("max_pool2d_with_indices", "2"),
                          ("adaptive_max_pool2d_with_indices", "2"))],
)  # fmt: skip
