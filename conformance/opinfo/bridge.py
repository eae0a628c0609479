"""Carries values and callables from real torch to an implementation, and results back.

A `Bridge` holds one implementation. `Bridge(torch)` is the reference: both sides of every
comparison get their inputs through the same conversion, so neither sees the other's memory.
"""

import builtins
import dataclasses
import functools
import types

import numpy as np
import torch
from torch.nn.utils.rnn import PackedSequence
from torch.testing._internal.opinfo.core import OpInfo
from torch.testing._utils import wrapper_set_seed

# dtypes that numpy lacks travel in a wider one, without loss.
WIDER = {
    torch.bfloat16: torch.float32,
    torch.complex32: torch.complex64,
    torch.float8_e4m3fn: torch.float32,
    torch.float8_e5m2: torch.float32,
}
NAMED = (torch.dtype, torch.layout, torch.memory_format)
NAMESPACES = (
    "",
    "nn.functional",
    "linalg",
    "fft",
    "special",
    "masked",
    "signal.windows",
    "nn.init",
    "nn.utils.rnn",
    "Tensor",
    "nn",
    "optim",
)


class Missing(Exception):
    """The implementation lacks this public name."""


def dig(root, path):
    for part in filter(None, path.split(".")):
        try:
            root = getattr(root, part)
        except AttributeError:
            raise Missing(path) from None
    return root


def short_name(dtype):
    return str(dtype).rsplit(".", 1)[-1]


@functools.cache
def public_paths():
    """id(torch object) -> (the object, kept so that its id stays its own; its dotted public name)."""
    paths = {}
    for space in NAMESPACES:
        home = dig(torch, space)
        for name in dir(home):
            if (not name.startswith("_") or name.startswith("__")) and callable(
                getattr(home, name, None)
            ):
                value = getattr(home, name)
                paths.setdefault(id(value), (value, f"{space}.{name}".lstrip(".")))
    return paths


def names_used(code):
    """Global names that a code object, or one nested in it, may read."""
    nested = (names_used(c) for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*nested)


def draws_random_numbers(function):
    return isinstance(function, types.FunctionType) and "wrapper_set_seed" in names_used(
        function.__code__
    )


def remember_constructor_arguments():
    """Let every torch.nn.Module know how it was built, so that a bridge can build its twin."""

    def __new__(cls, *args, **kwargs):
        self = object.__new__(cls)
        object.__setattr__(self, "_built_with", (args, kwargs))
        return self

    torch.nn.Module.__new__ = __new__


class Stand_in:
    """Plays the name `torch` inside a transplanted function; absent names raise Missing."""

    def __init__(self, model, home, path):
        self._model, self._home, self._path = model, home, path

    def __getattr__(self, name):
        path = f"{self._path}.{name}".lstrip(".")
        value, model = dig(self._home, name), getattr(self._model, name, None)
        return Stand_in(model, value, path) if isinstance(model, types.ModuleType) else value


class Memo(dict):
    """id(torch tensor) -> (torch tensor, its twin), and the memory that the twins live on.

    leaves: where twins are views with a bit, what they are views of.
    """

    def __init__(self):
        self.memory = {}
        self.leaves = {}


VIEWS = {
    "conj": (torch.Tensor.conj_physical, "conj"),
    "neg": (torch.Tensor.neg, "_neg_view"),
}
"""A bit -> what makes memory of values, and the public name of the view with those values."""


class Bridge:
    def __init__(self, impl, bits=()):
        self.impl = impl
        self.bits = bits  # which of VIEWS the inputs are
        self.compares_bits = bool(bits)  # whether results must have the same
        self._callables = {}

    def get(self, path):
        return dig(self.impl, path)

    def seed(self, number):
        if hasattr(self.impl, "manual_seed"):
            self.impl.manual_seed(number)

    # ---- torch -> implementation

    def send(self, x, memo=None):
        """Convert x, recursively. One memo for one call keeps shared tensors and memory shared."""
        memo = Memo() if memo is None else memo
        if isinstance(x, torch.Tensor):
            if id(x) not in memo:
                memo[id(x)] = x, self.send_tensor(x, memo)
            return memo[id(x)][1]
        if isinstance(x, torch.Size):
            return self.get("Size")(tuple(x))
        if isinstance(x, PackedSequence):
            return self.get("nn.utils.rnn.PackedSequence")(*(self.send(v, memo) for v in x))
        if isinstance(x, (list, tuple)):
            return type(x)(self.send(v, memo) for v in x)
        if isinstance(x, dict):
            return type(x)((k, self.send(v, memo)) for k, v in x.items())
        if isinstance(x, NAMED):
            return self.get(short_name(x))
        if isinstance(x, torch.device):
            return self.get("device")(str(x))
        if isinstance(x, torch.nn.Module):
            return self.send_module(x)
        if isinstance(x, OpInfo):  # which a helper of the database may ask for the operator's name
            return x
        if dataclasses.is_dataclass(x) and type(x).__module__.startswith("torch."):
            fields = {f.name: self.send(getattr(x, f.name)) for f in dataclasses.fields(x)}
            return self.send_callable(type(x))(**fields)
        return self.send_callable(x) if callable(x) else x

    def send_tensor(self, t, memo):
        if t.layout != torch.strided or t.device.type != "cpu":
            raise Missing(f"{t.layout} tensors on {t.device}")
        plain = t.detach().to(WIDER.get(t.dtype, t.dtype)).resolve_conj().resolve_neg()
        make = getattr(self.impl, "from_numpy", None) or self.get("tensor")
        bits = self.bits_for(t)
        twin = make(self.array(plain, memo.memory, bits))
        if t.dtype in WIDER:
            twin = twin.to(self.get(short_name(t.dtype)))
        if isinstance(t, torch.nn.Parameter):
            twin = self.get("nn.Parameter")(twin, requires_grad=t.requires_grad)
            if t.grad is not None:
                twin.grad = self.send(t.grad)
        elif t.requires_grad:
            twin.requires_grad_()
        memo.leaves[id(t)] = twin
        for bit in bits:
            twin = self.get(VIEWS[bit][1])(twin)
        return twin

    def bits_for(self, t):
        """The bits that a tensor can have, of those that are wanted."""
        if isinstance(t, torch.nn.Parameter) or t.dtype in WIDER:
            return ()
        numbers = t.is_complex() or t.is_floating_point()
        return [bit for bit in self.bits if t.is_complex() or (bit == "neg" and numbers)]

    @staticmethod
    def array(t, memory, bits=()):
        """A numpy array of t's values and strides, in a private copy of t's storage; with bits, of
        what lies under a view that has t's values."""
        storage = t.untyped_storage()
        key = storage.data_ptr(), t.dtype
        if key not in memory:  # the storage is kept as well, so that its address stays its own
            values = torch.empty(0, dtype=t.dtype).set_(storage)
            for bit in bits:
                values = VIEWS[bit][0](values)
            memory[key] = storage, values.numpy().copy()
        start = memory[key][1][t.storage_offset() :]
        return np.lib.stride_tricks.as_strided(
            start, t.shape, [s * start.itemsize for s in t.stride()]
        )

    def send_module(self, m):
        args, kwargs = m._built_with
        twin = self.send_callable(type(m))(*self.send(args), **self.send(kwargs))
        twin.load_state_dict(self.send(dict(m.state_dict())))
        twin.train(m.training)
        return twin

    def send_callable(self, f, preferred=None):
        """The implementation's callable of the same public name; `preferred` if that names f too.

        The op database's own helper lambdas (lambda x: x.T, ...) have no public name: they are
        rebuilt with the name `torch` bound to the implementation.
        """
        key = (id(f), preferred)
        if key not in self._callables:  # f is kept as well, so that its id stays its own
            self._callables[key] = f, self._find_callable(f, preferred)
        return self._callables[key][1]

    def _find_callable(self, f, preferred):
        try:
            known = preferred and dig(torch, preferred) == f
        except Missing:
            known = False
        path = preferred if known else public_paths().get(id(f), (f, None))[1]
        home = getattr(f, "__module__", None) or ""
        if path:
            return self.get(path)
        if f is wrapper_set_seed:
            return lambda op, *args, **kwargs: op(*args, **kwargs)
        if isinstance(f, functools.partial):
            return functools.partial(self.send(f.func), *self.send(f.args), **self.send(f.keywords))
        if isinstance(f, types.FunctionType) and home.startswith("torch.testing."):
            return self.transplant(f)
        if home.startswith("torch"):
            raise Missing(f"a public name for {f!r}")
        return f

    def transplant(self, f):
        scope = {"__builtins__": builtins}
        for name in names_used(f.__code__) & f.__globals__.keys():
            value = f.__globals__[name]
            if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] == "torch":
                path = value.__name__.partition(".")[2]
                value = Stand_in(value, self.get(path), path)
            elif callable(value):
                value = self.send(value)
            scope[name] = value
        cells = tuple(types.CellType(self.send(c.cell_contents)) for c in f.__closure__ or ())
        twin = types.FunctionType(f.__code__, scope, f.__name__, self.send(f.__defaults__), cells)
        twin.__kwdefaults__ = self.send(f.__kwdefaults__)
        return twin

    # ---- implementation -> torch

    def fetch(self, x):
        dtype = getattr(torch, short_name(x.dtype))
        x = x.detach()
        for settle in ("resolve_conj", "resolve_neg", "clone"):
            x = getattr(x, settle)() if hasattr(x, settle) else x
        if dtype in WIDER:
            x = x.to(self.get(short_name(WIDER[dtype])))
        return torch.from_numpy(np.array(x.numpy())).to(dtype)

    def grad(self, outputs, inputs, cotangents):
        """The implementation's gradients; None where the graph does not reach an input."""
        if not outputs or not inputs:
            return [None] * len(inputs)
        return list(
            self.get("autograd.grad")(outputs, inputs, self.send(cotangents), allow_unused=True)
        )
