"""Calls of modules, of what looks after their gradients, of masked and of random functions."""

from __future__ import annotations

from .program import FORMATS, MODEL, SWITCH, Program

GENERATORS = ("torch.Generator().manual_seed(3)", "torch.Generator().manual_seed(4)", "None")
MASKED = "x = torch.tensor([[1.0, 5.0, 2.0], [4.0, 0.5, 3.0]])\n"
MASK = "torch.tensor([[True, False, True], [True, True, False]])"
SEEN = "seen = []\ndef note(*a, **k):\n    seen.append((len(a), sorted(k)))\n"
FAILS = "m.forward = lambda *a, **k: 1 / 0\n"


def _masked() -> list[Program]:
    """Options of `torch.masked`."""
    reductions = ("amax", "amin", "argmax", "argmin", "logsumexp", "mean", "median", "norm",
                  "prod", "std", "sum", "var")  # fmt: skip
    along = ("cumprod", "cumsum", "log_softmax", "softmax", "softmin", "normalize")
    found = []
    for name in (*reductions, *along):
        given = {"norm": "2.0, ", "normalize": "2.0, ", "std": "", "var": ""}.get(name, "")
        path, head = f"torch.masked.{name}", f"{MASKED}r = torch.masked.{name}(x, {given}"
        place = "1, " if name in along or name in ("median",) else ""
        found += [
            Program(path, "mask", ("None", MASK), f"{head}{place}mask=VALUE)\n"),
            Program(path, "dtype", ("None", "torch.float64"), f"{head}{place}dtype=VALUE)\n"),
        ]
        if name in reductions:
            found += [
                Program(path, "dim", ("0", "1"), f"{head}dim=VALUE)\n"),
                Program(path, "keepdim", SWITCH, f"{head}dim=1, keepdim=VALUE)\n"),
            ]
    return found


def _random() -> list[Program]:
    """`generator=` of everything that draws."""
    calls = (
        "x.bernoulli_(0.5, ", "x.random_(", "x.random_(9, ", "x.uniform_(", "x.normal_(",
        "x.exponential_(", "x.geometric_(0.5, ", "x.cauchy_(", "x.log_normal_(",
        "x.bernoulli(", "x.multinomial(2, ", "torch.bernoulli(x, ", "torch.bernoulli(x, 0.5, ",
        "torch.multinomial(x, 2, ", "torch.poisson(x, ", "torch.normal(x, 1.0, ",
        "torch.normal(0.0, x, ", "torch.normal(x, x, ", "torch.binomial(x * 9, x, ",
        "torch.rrelu(-x, training=True, ", "torch.nn.init.uniform_(x, 0, 1, ",
        "torch.nn.init.normal_(x, ", "torch.nn.init.trunc_normal_(x, ",
        "torch.nn.init.xavier_uniform_(x, ", "torch.nn.init.xavier_normal_(x, ",
        "torch.nn.init.kaiming_uniform_(x, ", "torch.nn.init.kaiming_normal_(x, ",
        "torch.nn.init.orthogonal_(x, ", "torch.nn.init.sparse_(x, 0.5, ",
        "torch.randperm(9, ", "torch.randint(9, (9,), ", "torch.randint_like(x, 9, ",
        "torch.rand_like(x, ", "torch.randn_like(x, ",
        "torch.utils.data.random_split(range(9), [4, 5], ",
        "torch.utils.data.RandomSampler(range(9), ",
        "torch.utils.data.SubsetRandomSampler(range(9), ",
        "torch.utils.data.WeightedRandomSampler([0.5] * 9, 9, ",
        "torch.utils.data.DataLoader(list(range(9)), shuffle=True, ",
    )  # fmt: skip
    found = []
    for call in calls:
        head = f"x = torch.full((5, 4), 0.5)\ntorch.manual_seed(7)\nr = {call}generator=VALUE)\n"
        if ".data." in call:
            head += "r = [list(map(int, part)) if hasattr(part, 'dataset') else int(part) "
            head += "for part in r]\n"
        path = call.partition("(")[0].replace("x.", "torch.Tensor.")
        found.append(Program(path, "generator", GENERATORS, head))
    return found


def _hooks() -> list[Program]:
    """Options of hooks of modules."""
    calls = {
        "register_forward_hook": ("prepend", "with_kwargs", "always_call"),
        "register_forward_pre_hook": ("prepend", "with_kwargs"),
        "register_full_backward_pre_hook": ("prepend",),
    }
    found = []
    for name, options in calls.items():
        for option in options:
            run = "m(torch.ones(1, 2, requires_grad=True)).sum().backward()"
            fail = FAILS if option == "always_call" else ""
            text = (
                f"m = torch.nn.Linear(2, 2)\n{SEEN}{fail}"
                f"m.{name}(note)\n"
                f"m.{name}(lambda *a, **k: seen.append(2) or None, {option}=VALUE)\n"
                f"try:\n    {run}\nexcept ZeroDivisionError:\n    pass\nm = 0\n"
            )
            found.append(Program(f"torch.nn.Module.{name}", option, SWITCH, text))
    return found


TWICE = "m = torch.nn.ModuleList([torch.nn.Linear(2, 2)] * 2)\n"
LOST = "p = torch.nn.Parameter(torch.ones(2))\np.grad = torch.tensor([float('inf'), 1.0])\n"
BAG = (
    "w = torch.arange(6.0).reshape(3, 2).clone().requires_grad_()\ni = torch.tensor([0, 2, 0, 1])\n"
)

ON_MODULES: tuple[Program, ...] = (
    *_masked(), *_random(), *_hooks(),
    *[Program(f"torch.nn.Module.{name}", option, values,
              f"{model}r = [n for n, _ in m.{name}({option}=VALUE)]\n")
      for name, option, values, model in (
          ("named_parameters", "recurse", SWITCH, MODEL),
          ("named_buffers", "recurse", SWITCH, MODEL),
          ("named_parameters", "prefix", ("''", "'a'"), MODEL),
          ("named_buffers", "prefix", ("''", "'a'"), MODEL),
          ("named_parameters", "remove_duplicate", SWITCH, TWICE),
          ("named_modules", "remove_duplicate", SWITCH, TWICE),
          ("named_modules", "prefix", ("''", "'a'"), MODEL))],
    *[Program("torch.nn.Module.state_dict", option, values,
              MODEL + f"d = m.state_dict({option}=VALUE)\n"
              "r = [(k, v.requires_grad) for k, v in d.items()]\nd = 0\n")
      for option, values in (("prefix", ("''", "'a.'")), ("keep_vars", SWITCH))],
    Program("torch.nn.Module.load_state_dict", "strict", SWITCH,
            MODEL + "r = m.load_state_dict({}, strict=VALUE).missing_keys\n"),
    Program("torch.nn.Module.zero_grad", "set_to_none", SWITCH,
            "m = torch.nn.Linear(2, 2)\nm(torch.ones(1, 2)).sum().backward()\n"
            "m.zero_grad(set_to_none=VALUE)\nr = m.weight.grad\nm = 0\n"),
    Program("torch.nn.Module.register_buffer", "persistent", SWITCH,
            "m = torch.nn.Module()\nm.register_buffer('b', torch.ones(1), persistent=VALUE)\n"
            "r = list(m.state_dict())\n"),
    Program("torch.nn.Module.requires_grad_", "requires_grad", SWITCH,
            MODEL + "m.requires_grad_(VALUE)\nr = [p.requires_grad for p in m.parameters()]\n"),
    Program("torch.nn.Module.set_submodule", "strict", SWITCH,
            MODEL + "m.set_submodule('new', torch.nn.ReLU(), strict=VALUE)\n"
            "r = [n for n, _ in m.named_modules()]\n"),
    Program("torch.nn.Module.to", "dtype", ("torch.float64", "torch.float16"),
            MODEL + "r = m.to(dtype=VALUE)[0].weight.dtype\n"),
    Program("torch.nn.utils.clip_grad_norm_", "error_if_nonfinite", SWITCH,
            LOST + "r = torch.nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=VALUE)\n"),
    Program("torch.nn.utils.get_total_norm", "error_if_nonfinite", SWITCH,
            LOST + "r = torch.nn.utils.get_total_norm([p.grad], error_if_nonfinite=VALUE)\n"),
    Program("torch.nn.utils.get_total_norm", "norm_type", ("1.0", "2.0", "float('inf')"),
            "r = torch.nn.utils.get_total_norm([torch.ones(2), torch.ones(3)], norm_type=VALUE)\n"),
    Program("torch.nn.utils.clip_grad_norm_", "norm_type", ("1.0", "2.0", "float('inf')"),
            "p = torch.nn.Parameter(torch.ones(2))\np.grad = torch.ones(2)\n"
            "r = torch.nn.utils.clip_grad_norm_([p], 1.0, norm_type=VALUE)\n"),
    *[Program(f"torch.nn.utils.{name}", "foreach", ("None", "True", "False"),
              "p = torch.nn.Parameter(torch.ones(2).to_sparse().to_dense())\n"
              f"p.grad = torch.ones(2).to_sparse()\nr = torch.nn.utils.{name}([p], 1.0, "
              "foreach=VALUE)\np.grad = None\n")
      for name in ("clip_grad_norm_", "clip_grad_value_")],
    *[Program("torch.nn.utils.parametrizations.orthogonal", option, values,
              "m = torch.nn.Linear(3, 3)\n"
              f"torch.nn.utils.parametrizations.orthogonal(m, {option}=VALUE)\n"
              "r = sorted(m.state_dict())\nw = m.weight.detach()\nm = 0\n")
      for option, values in (("orthogonal_map", ("'matrix_exp'", "'cayley'", "'householder'")),
                             ("use_trivialization", SWITCH))],
    *[Program("torch.nn.utils.parametrizations.spectral_norm", option, values,
              "m = torch.nn.Linear(3, 3)\n"
              f"torch.nn.utils.parametrizations.spectral_norm(m, {option}=VALUE)\n"
              "w = m.weight.detach()\nm = 0\n")
      for option, values in (("n_power_iterations", ("1", "20")), ("eps", ("1e-12", "9.0")),
                             ("dim", ("0", "1")))],
    Program("torch.nn.utils.parametrizations.weight_norm", "dim", ("0", "1", "None"),
            "m = torch.nn.Linear(3, 2)\ntorch.nn.utils.parametrizations.weight_norm(m, dim=VALUE)\n"
            "r = m.parametrizations.weight.original0.detach()\nm = 0\n"),
    Program("torch.nn.utils.parametrize.register_parametrization", "unsafe", SWITCH,
            "m = torch.nn.Linear(3, 2)\np = torch.nn.Module()\np.forward = lambda x: x.double()\n"
            "torch.nn.utils.parametrize.register_parametrization(m, 'weight', p, unsafe=VALUE)\n"
            "r = m.weight.dtype\nm = p = 0\n"),
    Program("torch.nn.utils.parametrize.remove_parametrizations", "leave_parametrized", SWITCH,
            "m = torch.nn.Linear(3, 2)\np = torch.nn.Module()\np.forward = lambda x: x * 2\n"
            "torch.nn.utils.parametrize.register_parametrization(m, 'weight', p)\n"
            "torch.nn.utils.parametrize.remove_parametrizations(m, 'weight', "
            "leave_parametrized=VALUE)\nr = m.weight.detach()\nm = p = 0\n"),
    *[Program("torch.nn.functional.embedding_bag", option, values,
              BAG + f"r = F.embedding_bag(i, w, torch.tensor([0, 2]), {option}=VALUE)\n"
              "r.sum().backward()\ng = (str(w.grad.layout), w.grad.to_dense())\nw.grad = None\n")
      for option, values in (
          ("max_norm", ("None", "1.0")), ("scale_grad_by_freq", SWITCH),
          ("mode", ("'mean'", "'sum'", "'max'")), ("sparse", SWITCH),
          ("include_last_offset", SWITCH), ("padding_idx", ("None", "0")))],
    *[Program("torch.nn.functional.embedding", option, values,
              BAG + f"r = F.embedding(i, w, {option}=VALUE)\n"
              "r.sum().backward()\ng = (str(w.grad.layout), w.grad.to_dense())\nw.grad = None\n")
      for option, values in (("max_norm", ("None", "1.0")), ("scale_grad_by_freq", SWITCH),
                             ("sparse", SWITCH), ("padding_idx", ("None", "0")))],
    *[Program("torch.nn.functional.scaled_dot_product_attention", option, values,
              "torch.manual_seed(7)\nq = torch.rand(1, 4, 3, 2)\nk = torch.rand(1, "
              "VALUE if False else 4, 3, 2)\n"
              f"r = F.scaled_dot_product_attention(q, k, k, {option}=VALUE)\n")
      for option, values in (("is_causal", SWITCH), ("scale", ("None", "2.0")),
                             ("dropout_p", ("0.0", "0.5")))],
    Program("torch.nn.functional.scaled_dot_product_attention", "enable_gqa", SWITCH,
            "q = torch.ones(1, 4, 3, 2)\nk = torch.ones(1, 2, 3, 2)\n"
            "r = F.scaled_dot_product_attention(q, k, k, enable_gqa=VALUE)\n"),
    Program("torch.nn.functional.multi_head_attention_forward", "need_weights", SWITCH,
            "m = torch.nn.MultiheadAttention(2, 1)\nx = torch.ones(3, 1, 2)\n"
            "r = m(x, x, x, need_weights=VALUE)[1]\nm = 0\n"),
    Program("torch.nn.functional.multi_head_attention_forward", "average_attn_weights", SWITCH,
            "m = torch.nn.MultiheadAttention(2, 2)\nx = torch.ones(3, 1, 2)\n"
            "r = m(x, x, x, average_attn_weights=VALUE)[1]\nm = 0\n"),
    *[Program(f"torch.nn.functional.{name}", "inplace", SWITCH,
              f"x = torch.tensor([-1.0, 2.0])\nr = F.{name}(x, inplace=VALUE)\n")
      for name in ("relu", "relu6", "elu", "selu", "celu", "leaky_relu", "hardtanh", "hardswish",
                   "hardsigmoid", "silu", "mish", "rrelu", "dropout", "alpha_dropout",
                   "feature_alpha_dropout")],
    *[Program("torch.amp.GradScaler", option, values,
              f"s = torch.amp.GradScaler('cpu', {option}=VALUE)\n"
              "p = torch.nn.Parameter(torch.ones(1))\no = torch.optim.SGD([p], lr=0.5)\n"
              "s.scale(p.sum()).backward()\ng = p.grad.clone()\ns.step(o)\ns.update()\n"
              "r = s.get_scale()\np.grad = torch.tensor([float('inf')])\n"
              "if s.is_enabled():\n    s.unscale_(o)\n    s.step(o)\n    s.update()\n"
              "q = s.get_scale()\ns = o = 0\n")
      for option, values in (("init_scale", ("4.0", "8.0")), ("growth_factor", ("2.0", "3.0")),
                             ("backoff_factor", ("0.5", "0.25")), ("growth_interval", ("1", "2")),
                             ("enabled", SWITCH))],
    *[Program("torch.lobpcg", option, values,
              "torch.manual_seed(7)\na = torch.diag(torch.arange(1.0, 13.0)).double()\n"
              f"r = torch.lobpcg(a, {given}{option}=VALUE)[0]\n")
      for option, values, given in (
          ("k", ("1", "2"), ""), ("largest", SWITCH, "k=1, "), ("niter", ("1", "50"), "k=1, "),
          ("tol", ("1e-12", "10.0"), "k=1, "),
          ("method", ("'basic'", "'ortho'", "'nope'"), "k=1, "),
          ("B", ("None", "torch.diag(torch.arange(1.0, 13.0) * 2).double()"), "k=1, "))],
    Program("torch.jit.optimize_for_inference", "other_methods", ("None", "['nope']"),
            "m = torch.nn.Linear(2, 2).eval()\n"
            "r = torch.jit.optimize_for_inference(torch.jit.script(m), VALUE)(torch.ones(1, 2))\n"),
    *[Program("torch.autograd.profiler.EventList.key_averages", option, values,
              "with torch.autograd.profiler.profile(record_shapes=True) as p:\n"
              "    torch.ones(2, 2).mm(torch.ones(2, 2))\n"
              "    torch.ones(3, 3).mm(torch.ones(3, 3))\n"
              f"r = [e.key for e in p.key_averages({option}=VALUE)].count('aten::mm')\np = 0\n")
      for option, values in (("group_by_input_shape", SWITCH),)],
    Program("torch.nn.functional.interpolate", "recompute_scale_factor", ("None", *SWITCH),
            "x = torch.arange(5.0).reshape(1, 1, 5)\n"
            "r = F.interpolate(x, scale_factor=1.5, mode='linear', "
            "recompute_scale_factor=VALUE)\n"),
    Program("torch.nn.functional.interpolate", "antialias", SWITCH,
            "x = torch.arange(16.0).reshape(1, 1, 4, 4)\n"
            "r = F.interpolate(x, size=(2, 2), mode='bilinear', antialias=VALUE)\n"),
    Program("torch.nn.utils.convert_conv2d_weight_memory_format", "memory_format", FORMATS,
            "m = torch.nn.Conv2d(2, 2, 3)\n"
            "r = torch.nn.utils.convert_conv2d_weight_memory_format(m, VALUE).weight.detach()\n"),
)  # fmt: skip
