"""Operators and modules on a GPU, real or emulated: values, shapes, strides, types and gradients beside
those of the same implementation on the CPU.

The implementation has to see a GPU: `FLAMBEAU_EMULATE_CUDA=1 python opinfo.py --devices` emulates one,
whose memory cannot be read by the host: a worker that tries ends, and its samples have not passed.
Samples for which something was copied to the host, for which a program waits, are counted ("waits").
"""

import contextlib
import traceback
import warnings

import compare
import numpy as np
import orders
from layouts import same_strides

CATEGORY = "devices"
LOOSE = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-4, "complex64": 2e-4,
         "float16": 2e-2, "bfloat16": 5e-2}  # fmt: skip
"""How far the results of two orders of summation may lie apart, relative to the largest number."""


class Function:
    """An operator on a sample, as it is or with its tensors on a device."""

    def __init__(self, bridge, function, call):
        self.bridge, self.function, self.call = bridge, function, call
        self.Tensor = bridge.get("Tensor")
        self.waits = 0

    def on(self, device):
        """What is called, and the tensors that it has itself: parameters, buffers."""
        return self.function, [], []

    def __call__(self, device, grad):
        function, leaves, buffers = self.on(device)
        moved = {}
        for x in self.call.tensors():
            y = moved[id(x)] = x.detach().to(device, copy=True)
            if grad and (y.dtype.is_floating_point or y.dtype.is_complex):
                leaves.append(y.requires_grad_())
        args, kwargs = (
            orders.substitute(tree, moved) for tree in (self.call.args, self.call.kwargs)
        )
        args = [device if str(arg) == "cpu" else arg for arg in args]
        if "device" in kwargs:
            kwargs = {**kwargs, "device": device}
        self.bridge.seed(0)
        with self.counted(device):
            results = compare.flatten([function(*args, **kwargs)])
        if not grad:
            return results + buffers
        roots = [r for r in results if isinstance(r, self.Tensor) and r.requires_grad]
        if roots:
            ones = [torch_like(self.bridge, root, device) for root in roots]
            with self.counted(device):
                self.bridge.get("autograd").backward(roots, ones)
        return [leaf.grad for leaf in leaves]

    @contextlib.contextmanager
    def counted(self, device):
        """Count where the host waits for the device."""
        if device == "cpu":
            yield
            return
        cuda = self.bridge.get("cuda")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            cuda.set_sync_debug_mode("warn")
            try:
                yield
            finally:
                cuda.set_sync_debug_mode("default")
        self.waits += sum(SYNCHRONISES in str(warning.message) for warning in told)


class Module(Function):
    """A module on a sample: function() makes it, on the CPU, the same every time."""

    def on(self, device):
        module = self.function().to(device)
        return module, list(module.parameters()), list(module.buffers())


def torch_like(bridge, root, device):
    """Numbers that differ from each other, as gradients to start with."""
    numbers = np.linspace(0.5, 1.5, root.numel()).reshape(tuple(root.shape))
    return bridge.get("tensor")(numbers).to(root.dtype).to(device)


SYNCHRONISES = "called a synchronizing CUDA operation"
"""What is said in the mode "warn" of `set_sync_debug_mode`."""
RANDOM = ("rand", "normal", "uniform", "dropout", "bernoulli", "multinomial", "cauchy", "exponential",
          "geometric", "rrelu", "gumbel", "empty", "multi_head_attention", "lowrank")  # fmt: skip


def check(bridges, functions, calls, name):
    """An operator on a sample."""
    if not calls[1].tensors():
        return {"no tensors": True}
    bare = any(word in name for word in RANDOM)
    return beside_the_cpu(Function(bridges[1], functions[1], calls[1]), bare)


def check_module(bridge, make, call, bare):
    """A module on a sample; bare: it draws random numbers, so that values are not compared."""
    return beside_the_cpu(Module(bridge, make, call), bare)


def beside_the_cpu(impl, bare):
    """Compare results, what a module keeps, and gradients on both devices."""
    impl.bridge.impl.backends.cudnn.allow_tf32 = False
    for grad in (False, True):
        try:
            want = impl("cpu", grad)
        except Exception:
            if grad:
                break
            return {"torch raises": True}
        try:
            got = impl("cuda", grad)
        except Exception as error:
            if "addmm_cuda" in str(error):  # torch has no products of integers there
                return {"torch raises": True}
            frames = traceback.extract_tb(error.__traceback__)
            at = [f"{f.filename.rpartition('flambeau/')[2]}:{f.lineno}" for f in frames
                  if "_ops/table" not in f.filename and "_ops/cuda" not in f.filename][-2:]  # fmt: skip
            raise AssertionError(f"{'gradient ' * grad}on cuda: {error!r} {at}") from error
        compare.expect(len(want) == len(got), f"{len(got)} results instead of {len(want)}")
        for i, (w, g) in enumerate(zip(want, got, strict=True)):
            same(impl, w, g, f"{'gradient ' * grad}{i}", bare, grad)
    return {"waits": bool(impl.waits)}


def same(impl, w, g, where, bare, grad):
    if not isinstance(w, impl.Tensor):
        compare.expect(
            bare or w == g or w != w or isinstance(w, float), f"{where}: {g!r}, not {w!r}"
        )
        return
    compare.expect(isinstance(g, impl.Tensor), f"{where} is {type(g)}")
    compare.expect(g.device.type == "cuda", f"{where} is on {g.device}")
    for fact in ("shape", "dtype"):
        pair = getattr(w, fact), getattr(g, fact)
        compare.expect(pair[0] == pair[1], f"{where}: {fact} {pair[1]} instead of {pair[0]}")
    if w.is_sparse:
        w, g = w.to_dense(), g.to_dense()
    elif not grad:
        compare.expect(same_strides(w, g), f"{where}: {g.stride()} instead of {w.stride()}")
    if bare or not w.numel():
        return
    kind = str(w.dtype).rpartition(".")[2]
    w, g = (x.detach().cpu().resolve_conj().resolve_neg() for x in (w, g))
    wide = "complex128" if w.dtype.is_complex else "float64"
    w, g = (np.asarray(x.to(getattr(impl.bridge.impl, wide)).numpy()) for x in (w, g))
    finite = np.isfinite(w) & np.isfinite(g)
    alike = (w == g) | (np.isnan(w) & np.isnan(g))
    scale = max(np.abs(w[finite]).max(initial=0), 1e-3)
    close = np.zeros(w.shape, bool)
    close[finite] = np.abs(w[finite] - g[finite]) <= LOOSE.get(kind, 0) * scale
    compare.expect(bool((alike | close).all()), f"{where}: {g.reshape(-1)[:4]} instead of "
                   f"{w.reshape(-1)[:4]}")  # fmt: skip
