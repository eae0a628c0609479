"""A stand-in implementation that proves the harness honest, in two ways.

It is torch behind opaque boxes: no object that it hands out is a torch object, so the harness
fails loudly wherever it would let real torch do the implementation's work.  With
FAKE_FAULTS=1 it also has the faults listed in FAULTS, each of which the harness must notice.

    python fake_impl.py     runs the harness on both forms and checks what it reports
"""

import collections
import ctypes
import functools
import os
import sys
import time
import types

import numpy as np
import torch

PLAIN = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    slice,
    type(...),
    np.ndarray,
    np.generic,
    BaseException,
)
OPERATORS = """add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul
    and rand or ror xor rxor lshift rlshift rshift rrshift neg pos abs invert lt le gt ge eq ne iadd isub imul
    itruediv iand ior ixor getitem setitem len bool int float complex index contains rdiv""".split()


class Box:
    """A torch object under the public name `path`."""

    def __init__(self, inside, path):
        object.__setattr__(self, "inside", inside)
        object.__setattr__(self, "path", path)

    def __getattr__(self, name):
        return attribute(self.inside, name, self.path)

    def __setattr__(self, name, value):
        setattr(self.inside, name, unwrap(value))

    def __call__(self, *args, **kwargs):
        return wrap(self.inside(*unwrap(args), **unwrap(kwargs)))

    def __iter__(self):
        return iter([wrap(x) for x in self.inside])

    def __repr__(self):
        return repr(self.inside)

    def __instancecheck__(self, x):
        return isinstance(unwrap(x), self.inside)

    def __hash__(self):
        return id(self.inside)

    def __eq__(self, other):
        return isinstance(other, Box) and other.inside is self.inside


class TensorNamespace(type):
    def __getattr__(cls, name):
        return attribute(torch.Tensor, name, "Tensor")


class Tensor(Box, metaclass=TensorNamespace):
    __hash__ = Box.__hash__

    def __init__(self, inside):
        super().__init__(inside, "Tensor")


def operator(name):
    return lambda *args: wrap(getattr(torch.Tensor, name)(*unwrap(args)))


for _name in OPERATORS:
    setattr(Tensor, f"__{_name}__", operator(f"__{_name}__"))


def attribute(owner, name, path):
    path = f"{path}.{name}".lstrip(".")
    if FAULTY and path in FAULTS:
        if FAULTS[path] is None:
            raise AttributeError(f"no {path}")
        return Box(FAULTS[path], path)
    return wrap(getattr(owner, name), path)


def wrap(x, path=""):
    if isinstance(x, (*PLAIN, Box)):
        return x
    if isinstance(x, torch.Tensor):
        if not hasattr(x, "box"):
            x.box = Tensor(x)  # one box for one tensor: `is` must work
        return x.box
    if isinstance(x, dict):
        return {k: wrap(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        items = [wrap(v) for v in x]
        names = getattr(type(x), "__match_args__", ())
        kind = (
            collections.namedtuple("Result", names)._make
            if names
            else list
            if isinstance(x, list)
            else tuple
        )
        return kind(items)
    return Box(x, path)


def unwrap(x):
    if isinstance(x, Box):
        return x.inside
    if isinstance(x, dict):
        return {k: unwrap(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        items = [unwrap(v) for v in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    if isinstance(x, (types.FunctionType, functools.partial)):
        return lambda *args, **kwargs: unwrap(x(*wrap(args), **wrap(kwargs)))
    if isinstance(x, (torch.Tensor, torch.dtype, torch.nn.Module)):
        raise TypeError(f"the harness leaked a real {type(x)}")
    return x


def __getattr__(name):
    return attribute(torch, name, "")


# ---------------------------------------------------------------- faults, by public name


def silent(function):
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception:
            return torch.zeros(1)

    return call


def forgetful_batch_norm(x, *statistics_and_more, **kwargs):
    copies = [v.clone() if isinstance(v, torch.Tensor) else v for v in statistics_and_more]
    return torch.nn.functional.batch_norm(x, *copies, **kwargs)


def flipped(function, *positions):
    def call(*args, **kwargs):
        out = function(*args, **kwargs)
        return type(out)([-x if i in positions else x for i, x in enumerate(out)])

    return call


def nothing(x, power):
    """Zeros, whose derivatives of orders below `power` are zeros, too."""
    return (x - x.detach()) ** power * 0.1


def overwritten(x, function, power):
    before = x.clone()
    return x.copy_(function(before) + nothing(before, power))


def only_once(function):
    """As `function`, but derivatives of its gradient are refused."""

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return function(x)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                return torch.autograd.grad(function(x), x, grad)[0]

    return Once.apply


class LeakyLinear(torch.nn.Linear):
    def forward(self, input):
        return super().forward(input) * 1.01


class HastySGD(torch.optim.SGD):
    def step(self, closure=None):
        super().step(closure)
        super().step(closure)


FAULTY = os.environ.get("FAKE_FAULTS") == "1"
FAULTS = {
    "add": lambda a, b, **kwargs: torch.add(a, b, **kwargs) + 1,  # wrong values
    "mul": None,  # function absent; the methods are there
    "dot": None,
    "div": lambda a, b, **kwargs: torch.div(a, b, **kwargs).double(),  # wrong type promotion
    "sum": lambda x, *args, **kwargs: torch.sum(x, *args, **kwargs).reshape(-1),  # wrong shape
    "sin": lambda x: x.sin() + (x - x.detach()) * 0.1,  # right values, wrong gradient
    "exp": lambda x: x.detach().exp(),  # cut from the graph
    "square": lambda x: x.square() + nothing(x, 2),  # wrong from the second order on
    "sinh": lambda x: x.sinh() + nothing(x, 3),  # wrong from the third order on
    "Tensor.tanh_": lambda x: overwritten(x, torch.tanh, 2),  # the same, in place
    "Tensor.erf_": lambda x: overwritten(x, torch.erf, 1),
    "cosh": only_once(torch.cosh),  # has no second order
    "Tensor.neg": lambda x: x.neg().abs(),  # wrong method
    "Tensor.abs_": lambda x: x.abs(),  # in-place variant that is not in place
    "cat": silent(torch.cat),  # swallows errors
    "cos": lambda x: time.sleep(1e6),  # hangs
    "tan": lambda x: ctypes.string_at(0),  # dies by a signal
    "rand_like": lambda x, **kwargs: torch.rand(7),  # random, but of the wrong shape
    "nn.functional.batch_norm": forgetful_batch_norm,  # does not update the running statistics
    # Not faults but other right answers, which the harness must accept:
    "svd": flipped(torch.svd, 0, 2),
    "linalg.svd": flipped(torch.linalg.svd, 0, 2),
    "svd_lowrank": flipped(torch.svd_lowrank, 0, 2),
    "pca_lowrank": flipped(torch.pca_lowrank, 0, 2),
    "qr": flipped(torch.qr, 0, 1),
    "linalg.qr": flipped(torch.linalg.qr, 0, 1),
    "linalg.eigh": flipped(torch.linalg.eigh, 1),
    "linalg.eig": flipped(torch.linalg.eig, 1),
    # Faults again, in classes:
    "nn.Linear": LeakyLinear,
    "optim.SGD": HastySGD,
}
EXPECTED = {  # (kind, name): category -> status
    ("ops", "add"): {
        "forward": "partial",
        "method": "pass",
        "inplace": "pass",
    },  # one sample is empty
    ("ops", "mul"): {"forward": "missing", "grad": "missing", "method": "pass"},
    ("ops", "div no_rounding_mode"): {"forward": "fail", "method": "pass"},
    ("ops", "sum"): {"forward": "partial"},
    ("ops", "sin"): {"forward": "pass", "grad": "fail"},
    ("ops", "exp"): {"forward": "fail", "grad": "fail"},
    ("ops", "square"): {
        "forward": "pass",
        "grad": "pass",
        "gradgrad": "partial",  # some samples are empty
        "inplace grad": "pass",
        "gradgradcheck": "fail",
        "inplace gradgradcheck": "pass",
    },
    ("ops", "sinh"): {"grad": "pass", "gradgrad": "fail"},
    ("ops", "tanh"): {
        "inplace": "pass",
        "gradgrad": "pass",
        "inplace grad": "fail",
        "inplace gradgradcheck": "fail",
    },
    ("ops", "erf"): {"inplace": "pass", "gradgrad": "pass", "inplace grad": "fail"},
    ("ops", "cosh"): {"grad": "pass", "gradgrad": "partial", "gradgradcheck": "fail"},
    ("ops", "neg"): {"forward": "pass", "method": "fail"},
    ("ops", "abs"): {"forward": "pass", "inplace": "fail"},
    ("ops", "cat"): {"forward": "pass", "errors": "fail"},
    ("ops", "dot"): {"forward": "missing", "errors": "missing"},
    ("ops", "cos"): {"forward": "fail", "grad": "fail", "method": "pass"},
    ("ops", "tan"): {"forward": "fail", "grad": "fail", "method": "pass"},
    ("ops", "rand_like"): {"forward": "fail"},
    ("ops", "nn.functional.batch_norm"): {"forward": "partial", "grad": "pass"},
    **{
        ("ops", name): {"forward": "pass", "grad": "pass"}
        for name in "svd linalg.svd svd_lowrank pca_lowrank qr linalg.qr linalg.eigh linalg.eig".split()
    },
    ("ops", "t"): {
        "forward": "pass",
        "method": "pass",
        "inplace": "pass",
        "grad": "pass",
        "errors": "pass",
    },
    ("modules", "nn.Linear"): {"forward": "fail", "grad": "fail"},
    ("modules", "nn.ReLU"): {"forward": "pass", "grad": "pass"},
    ("optims", "SGD"): {"steps": "fail"},
    ("optims", "Adam"): {"steps": "pass"},
}


def check_faults_are_seen():
    import opinfo

    names = "|".join(name.split()[0] for _, name in EXPECTED)
    results = opinfo.main(
        [
            "--impl",
            "fake_impl",
            "--ops",
            rf"^({names})\b",
            "--grad",
            "--gradgrad",
            "--gradgradcheck",
            "--modules",
            "--optims",
            "--timeout",
            "5",
            "-v",
        ]
    )
    found = {(r["kind"], r["name"]): r["categories"] for r in results}
    wrong = [
        (key, category, found[key][category]["status"], status)
        for key, categories in EXPECTED.items()
        for category, status in categories.items()
        if found[key][category]["status"] != status
    ]
    for key, category, have, need in wrong:
        print(f"WRONG: {key} {category} is {have}, must be {need}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    os.environ["FAKE_FAULTS"] = "1"
    check_faults_are_seen()
