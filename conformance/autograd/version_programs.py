"""Random programs that write to what autograd saved, in all the ways there are.

A program is a list of lines of Python; `t` is the library, `L` what gradients are wanted of. A line
that raises leaves a note and its names unset; a line that needs an unset name is not run. So both
libraries run the same lines as long as they behave the same.
"""

from __future__ import annotations

import random
import re
import warnings
from typing import Any

import numpy as np

START = (
    "h = t.tensor([[.5, 1.25, 2.], [1.5, .75, .25]], requires_grad=True)",
    "k = t.tensor([[1., .5, .75], [.25, 2., 1.5]], requires_grad=True)",
    "c = t.tensor([[.5, 2., 1.], [.75, .25, 1.5]])",
)
# Signs are taken of numbers: which one a NaN has depends on the processor and the type.
# Not `logsigmoid`: PyTorch keeps exp(-|x|) beside x, which no write to x reaches.
UNARY = (
    "{a}.exp()", "{a}.tanh()", "{a}.sigmoid()", "{a}.abs().sqrt()", "{a}.reciprocal()",
    "t.rsqrt({a}.abs() + 1)", "t.relu({a})", "t.softmax({a}, -1)", "t.log_softmax({a}, 0)",
    "t.expm1({a})", "{a}.cumprod(0)", "{a}.prod()", "{a}.norm()", "{a}.norm(dim=0)",
    "t.logsumexp({a}, -1)", "{a}.std()", "{a}.var(0)", "{a}.max(-1)[0]", "{a}.sort(-1)[0]",
    "{a}.topk(1)[0]", "{a}.cummax(0)[0]", "{a}.amax(-1)", "t.logcumsumexp({a}, 0)", "{a} ** 2",
    "{a} ** 2.5", "2 ** {a}", "t.nn.functional.elu({a})", "t.nn.functional.gelu({a})",
    "t.nn.functional.silu({a})", "t.nn.functional.softplus({a})", "t.nn.functional.selu({a})",
    "t.nn.functional.leaky_relu({a})", "t.nn.functional.hardtanh({a})", "{a}.log()", "{a}.sin()",
    "{a}.cos()", "{a}.abs()", "{a}.clamp(.5, 1.5)", "{a} * 2", "{a} + 1", "-{a}", "{a}.clone()",
    "{a}.sum()", "{a}.mean(-1)", "t.nn.functional.layer_norm({a}, {a}.shape[-1:])", "{a}.atan()",
    "{a}.median(-1)[0]", "{a}.erf()", "{a}.sinh()", "{a}.square()", "t.nn.functional.mish({a})",
    "t.nn.functional.normalize({a})", "{a}.masked_fill(b, 0.)",
    "{a}.index_select(0, i)", "{a}.gather(0, j)", "t.where(b, {a}, 0.)", "{a}.min(0)[0]",
    "{a}.flatten().take(i)", "t.nn.functional.relu6({a})", "t.nn.functional.hardswish({a})",
    "{a}.log1p()", "t.nn.functional.glu({a}, 0)", "{a}.mode(-1)[0]", "Square.apply({a})",
    "Expo.apply({a})", "Both.apply({a})[0]", "Both.apply({a})[1]", "Dirty.apply({a})",
    "Same.apply({a})", "t.utils.checkpoint.checkpoint(deep, {a}, use_reentrant=False)",
    "t.linalg.vector_norm({a})", "hooked(t.square, {a})", "{a}.T @ {a}",
)  # fmt: skip
BINARY = (
    "{a} * {b}", "{a} / {b}", "{a} + {b}", "{a} - {b}", "t.atan2({a}, {b})", "{a} ** {b}",
    "t.maximum({a}, {b})", "t.lerp({a}, {b}, .25)", "t.lerp({a}, {b}, c)", "t.hypot({a}, {b})",
    "t.addcmul({a}, {b}, c)", "t.addcdiv({a}, {b}, c)", "t.where({a} > 1, {a}, {b})",
    "t.mm({a}, {b}.T)", "t.addmm({a}, {b}, c[:, :2])", "t.einsum('ij,ij->i', {a}, {b})",
    "t.dist({a}, {b})", "t.cat([{a}, {b}])", "t.stack([{a}, {b}])",
    "t.nn.functional.mse_loss({a}, {b}.expand_as({a}))", "t.fmod({a}, {b})",
    "t.nn.functional.cosine_similarity({a}, {b})", "t.nn.functional.prelu({a}, {b}.flatten()[:3])",
    "{a} * {b}.sum()", "t.nn.functional.kl_div({a}, {b})",
    "t.nn.functional.binary_cross_entropy_with_logits({a}, {b})", "t.xlogy({a}, {b})",
    "t.nn.functional.smooth_l1_loss({a}, {b}.expand_as({a}))", "Product.apply({a}, {b})",
    "t.copysign({a}, {b}.nan_to_num())",
)  # fmt: skip
VIEWS = (
    "{a}[0]", "{a}[:, 1:]", "{a}.T", "{a}.view(-1)", "{a}.unbind(0)[1]", "{a}.split(1)[0]",
    "{a}.chunk(2, -1)[0]", "{a}.detach()", "{a}.data", "{a}[:]", "{a}.select(-1, 0)",
    "{a}.narrow(0, 0, 1)", "{a}.diagonal()", "{a}.unsqueeze(0)", "{a}.squeeze()",
    "{a}.view_as({a})", "{a}.expand_as({a})", "{a}.permute(1, 0)", "{a}.reshape(3, 2)",
    "{a}.flatten()", "{a}.unfold(-1, 1, 1)", "{a}.detach()[0]", "{a}.data[0]", "{a}.to(t.float32)",
    "{a}.contiguous()", "{a}.unflatten(-1, (1, -1))", "{a}.tensor_split(2)[1]",
    "{a}.swapaxes(0, 1)", "{a}.detach().requires_grad_()", "quiet(lambda: {a}[0])",
    "t.nn.Parameter({a}.detach())", "t.nn.Parameter({a}.data)", "t.as_tensor({a})", "{a}.mT",
    "{a}.ravel()", "{a}.movedim(0, 1)", "t.atleast_3d({a})",
)  # fmt: skip
WRITES = (
    "{a}.mul_({a})", "{a}.mul_(3)", "{a}.add_(1)", "{a}.exp_()", "{a}.tanh_()", "{a}.sigmoid_()",
    "{a}.zero_()", "{a}.fill_(2.)", "{a}.copy_({b}.clone())", "{a}.mul_({b}.clone())",
    "{a}.add_({b}.clone(), alpha=2)", "{a}.sub_({b}.clone())", "{a}[0] = 1.",
    "{a}[0] = {b}.clone()[0]", "{a}[..., 0] = 2.", "{a}[...] = {b}.clone()", "{a}[b] = 0.",
    "{a}[i] = 1.", "{a}.masked_fill_(b, 2.)", "{a}.index_put_((i,), {b}.clone()[0])",
    "{a}.div_({b}.clone())", "{a}.scatter_(0, j, 1.)", "{a}.scatter_add_(0, j, {b}.clone()[:2])",
    "{a}.index_add_(0, i, {b}.clone())", "{a}.index_fill_(0, i, 1.)", "{a}.clamp_(.5, 1.)",
    "t.mul({a}.clone(), 2, out={a})", "t.add({a}.data.clone(), 1, out={a})",
    "t.exp({a}.detach().clone(), out={a})", "step(t.optim.SGD, {a})", "step(t.optim.Adam, {a})",
    "step(t.optim.AdamW, {a})", "step(t.optim.RMSprop, {a})", "step(t.optim.Adagrad, {a})",
    "{a}.data.mul_(2)", "{a}.detach().mul_(2)", "{a}.detach().zero_()", "{a}.data.zero_()",
    "{a}.T.mul_(2)", "{a}.detach().numpy()[...] = 2.", "{a}.untyped_storage().fill_(0)",
    "{a}.view(-1).mul_(2)", "{a}.detach().numpy().fill(1.)", "{a}.detach()[0].add_(1)",
    "{a}[0].mul_(3)", "{a}.pow_(2)", "{a}.relu_()", "t.relu_({a})",
    "t.nn.functional.relu({a}, inplace=True)", "{a}.cumsum_(0)", "{a}.neg_()", "{a}.t_()",
    "{a}.unsqueeze_(0)", "{a}.squeeze_()", "{a}.transpose_(0, 1)", "{a}.resize_(1)",
    "{a}.detach().resize_(1, 1)", "{a}.sqrt_()", "{a}.lerp_({b}.clone(), .5)",
    "{a}.addcmul_({b}.clone(), c)", "{a}.uniform_()", "{a}.normal_()", "{a}.bernoulli_(.5)",
    "{a} += 1", "{a} *= {b}.clone()", "{a} /= 2", "{a}.unbind(0)[0].mul_(2)",
    "{a}.split(1)[0].mul_(2)", "{a}.triu_()", "t.nn.init.ones_({a})", "t.nn.init.normal_({a})",
    "clip({a})", "{a}.tril_()", "{a}.index_copy_(0, i, {b}.clone())",
    "{a}.swapaxes_(0, 1)", "{a}.round_()", "{a}.sign_()", "{a}.fill_diagonal_(1.)",
    "t.nn.functional.dropout({a}, .5, inplace=True)", "{a}.logical_not_()", "{a}.renorm_(2, 0, 1.)",
    "{a}.addmm_({b}.clone()[:, :2].clone(), c[:, :2].T.clone())",
    "t.relu({a}.data.clone()).copy_({a})", "t.cat([{a}.data.clone()], out={a})", "{a}.erfinv_()",
    "{a}.reciprocal_()", "{a}.clamp_min_(.5)", "{a}.floor_()", "{a}.sin_()",
    "t.nn.functional.silu({a}, inplace=True)", "t.nn.functional.hardtanh_({a})", "{a}.atan_()",
    "{a}.addcdiv_({b}.clone(), c)", "{a}.copysign_({b}.nan_to_num())", "{a}.xlogy_({b}.clone())",
    "t.nn.functional.normalize({a}.data.clone(), out={a})", "{a}.fmod_(2)", "Dirty.apply({a})",
    "t.unbind({a})[0][0].fill_(1.)", "b.logical_not_()", "i.zero_()", "j.zero_()", "c.mul_(2)",
    "c[0] = 1.", "h.data.add_(1)", "t.tanh({a}.data.clone(), out={a})",
)  # fmt: skip
GEOMETRY = ("unsqueeze_", "squeeze_", "t_", "transpose_", "swapaxes_", "as_strided_", "resize_")
MODES = ("{w}", "{w}", "{w}", "quiet(lambda: {w})", "inferring(lambda: {w})")


class Writer:
    """Draws one program."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.names = ["h", "k", "c"]
        self.lines: list[str] = []

    def program(self) -> list[str]:
        kinds = (self._compute, self._compute, self._view, self._write, self._write, self._forget,
                 self._wanted)  # fmt: skip
        self._compute()
        for _ in range(self.draw.randint(2, 12)):
            self.draw.choice(kinds)()
        if not any(line.startswith("L") for line in self.lines):
            self._wanted()
        return self.lines

    def _name(self) -> str:
        """A tensor, rather a late one."""
        late = self.names[-3:]
        return self.draw.choice(late if self.draw.random() < 0.6 else self.names)

    def _fill(self, text: str) -> str:
        return text.replace("{a}", self._name()).replace("{b}", self._name())

    def _define(self, text: str) -> None:
        name = f"v{len(self.lines)}"
        line = f"{name} = {self._fill(text)}"
        if self.draw.random() < 0.08:
            line = f"{name} = quiet(lambda: {self._fill(text)})"
        self.lines.append(line)
        self.names.append(name)

    def _compute(self) -> None:
        self._define(self.draw.choice(UNARY if self.draw.random() < 0.6 else BINARY))
        if self.draw.random() < 0.3:
            self.lines.append(f"L.append({self.names[-1]}.sum())")

    def _view(self) -> None:
        self._define(self.draw.choice(VIEWS))

    def _write(self) -> None:
        write = self._fill(self.draw.choice(WRITES))
        if "=" in re.sub(r"\([^()]*\)", "", write):  # no expression
            self.lines.append(write)
            return
        plain = any(name in write for name in GEOMETRY)
        mode = "{w}" if plain else self.draw.choice(MODES)
        self.lines.append(mode.replace("{w}", write))

    def _forget(self) -> None:
        if len(self.names) > 4:
            name = self.draw.choice(self.names[3:])
            self.names.remove(name)
            self.lines.append(f"del {name}")

    def _wanted(self) -> None:
        self.lines.append(f"L.append({self._name()}.sum())")


def _squared(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x)
    return x * x


def _squared_backward(ctx: Any, grad: Any) -> Any:
    return 2 * ctx.saved_tensors[0] * grad


def _exponential(ctx: Any, x: Any) -> Any:
    result = x.exp()
    ctx.save_for_backward(result)
    return result


def _times_saved(ctx: Any, grad: Any) -> Any:
    return ctx.saved_tensors[0] * grad


def _both(ctx: Any, x: Any) -> Any:
    middle, result = x * 2, x.exp()
    ctx.save_for_backward(x, middle, result)
    return result, middle


def _both_backward(ctx: Any, first: Any, second: Any) -> Any:
    x, middle, result = ctx.saved_tensors
    return first * result + second * 2 + 0 * (x + middle)


def _dirty(ctx: Any, x: Any) -> Any:
    x.exp_()
    ctx.mark_dirty(x)
    ctx.save_for_backward(x)
    return x


def _same(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x)
    return x


def _product(ctx: Any, x: Any, y: Any) -> Any:
    ctx.save_for_backward(x, y)
    return x * y


def _product_backward(ctx: Any, grad: Any) -> Any:
    x, y = ctx.saved_tensors
    return grad * y, grad * x


FUNCTIONS = {
    "Square": (_squared, _squared_backward), "Expo": (_exponential, _times_saved),
    "Both": (_both, _both_backward), "Dirty": (_dirty, _times_saved),
    "Same": (_same, _times_saved), "Product": (_product, _product_backward),
}  # fmt: skip
"""Functions of users: how they compute, and their gradients."""


def helpers(t: Any) -> dict[str, Any]:
    """What lines may call."""
    functions = {
        name: type(name, (t.autograd.Function,),
                   {"forward": staticmethod(forward), "backward": staticmethod(backward)})
        for name, (forward, backward) in FUNCTIONS.items()
    }  # fmt: skip

    def within(mode: Any, body: Any) -> Any:
        with mode:
            return body()

    def step(kind: Any, x: Any) -> None:
        if not x.is_leaf:
            raise ValueError("no leaf")
        x.grad = t.ones_like(x)
        kind([x], lr=0.1).step()

    def clip(x: Any) -> None:
        if x.grad is not None and x.grad.is_inference() and not t.is_inference_mode_enabled():
            raise ValueError("PyTorch writes before it refuses")
        t.nn.utils.clip_grad_norm_([x], 1.0)

    def hooked(function: Any, x: Any) -> Any:
        mode = t.autograd.graph.saved_tensors_hooks(lambda s: s, lambda s: s)
        return within(mode, lambda: function(x))

    return {
        **functions, "step": step, "clip": clip, "hooked": hooked,
        "deep": lambda x: (x.exp() * x).tanh(),
        "quiet": lambda body: within(t.no_grad(), body),
        "inferring": lambda body: within(t.inference_mode(), body),
    }  # fmt: skip


NUMBERS = re.compile(r"(?<=Backward)\d+|(?<=of [A-Z][a-z]{2})\d|(?<=of [A-Z][a-z]{3})\d")
"""Which overload of an operator it was: numbers in the names of nodes."""


TOLD = ("modified", "in-place operation", "Inplace update", "returned an invalid gradient")
"""Words of errors that have to agree."""


def note(error: Exception) -> str:
    """What of an error has to agree: of those about versions and views all, of others the kind."""
    text = NUMBERS.sub("", str(error).split("\n")[0])
    told = any(word in text for word in TOLD)
    return f"{type(error).__name__}: {text}" if told else "error"


def run(program: list[str], t: Any, start: tuple[str, ...] = START,
        words: dict[str, Any] | None = None) -> list[Any]:  # fmt: skip
    """What a library makes of a program: errors of lines, versions, values, gradients."""
    t.manual_seed(0)
    scope: dict[str, Any] = {"t": t, "L": [], **helpers(t), **(words or {})}
    scope["b"] = t.tensor([[True, False, True], [False, True, False]])
    scope["i"] = t.tensor([1, 0])
    scope["j"] = t.tensor([[1, 0, 1], [0, 1, 0]])
    seen: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in (*start, *program):
            _run_line(line, scope, seen)
        seen.append({name: _state(scope[name]) for name in sorted(scope)
                     if isinstance(scope[name], t.Tensor)})  # fmt: skip
        leaves = [scope["h"], scope["k"]]
        for total in scope["L"]:
            seen.append(_gradients(t, total, leaves))
    return seen


def _run_line(line: str, scope: dict[str, Any], seen: list[Any]) -> None:
    known = set(re.findall(r"\b(?:v\d+|[hkc])\b", line.partition(" = ")[2] or line))
    if any(name not in scope for name in known):
        return
    try:
        exec(line, scope)
    except Exception as error:  # noqa: BLE001
        seen.append(f"{line}  ->  {note(error)}")
        return
    seen.append(f"{line}  ->  done")


def _state(tensor: Any) -> Any:
    try:
        version: Any = tensor._version
    except RuntimeError:
        version = "none"
    try:
        history: Any = tensor.grad_fn is not None
    except RuntimeError as error:
        history = note(error)
    values = np.array(tensor.detach().numpy()) if tensor.dtype.is_floating_point else None
    return {"version": version, "requires_grad": tensor.requires_grad, "history": history,
            "shape": tuple(tensor.shape), "values": values, "grad": _kept(tensor)}  # fmt: skip


def _kept(tensor: Any) -> Any:
    """What backward left in a leaf."""
    try:
        if not tensor.is_leaf or tensor.grad is None:
            return None
    except RuntimeError as error:
        return note(error)
    return np.array(tensor.grad.detach().numpy())


def _gradients(t: Any, total: Any, leaves: list[Any]) -> Any:
    try:
        found = t.autograd.grad(total, leaves, retain_graph=True, allow_unused=True)
    except Exception as error:  # noqa: BLE001
        return note(error)
    return [None if g is None else np.array(g.detach().numpy()) for g in found]


def difference(theirs: Any, ours: Any) -> str | None:
    """The first thing in which two runs differ."""
    if isinstance(theirs, dict) and isinstance(ours, dict) and theirs.keys() == ours.keys():
        parts = ((key, difference(theirs[key], ours[key])) for key in theirs)
        return next((f"{key}: {found}" for key, found in parts if found), None)
    if isinstance(theirs, (list, tuple)) and isinstance(ours, (list, tuple)):
        if len(theirs) == len(ours):
            return next(filter(None, map(difference, theirs, ours)), None)
    elif isinstance(theirs, np.ndarray) and isinstance(ours, np.ndarray):
        same = theirs.shape == ours.shape
        if same and np.isnan(theirs).any():  # which one is greatest, where it goes: no matter here
            return None
        if same and np.allclose(theirs, ours, 2e-3, 1e-3, equal_nan=True):
            return None
    elif type(theirs) is type(ours) and (theirs == ours or _both_refuse(theirs, ours)):
        return None
    return f"{theirs}\n    against {ours}"


def _both_refuse(theirs: Any, ours: Any) -> bool:
    """Torch looks at stale views before it looks at arguments, which may be wrong, too."""
    if not isinstance(theirs, str):
        return False
    line, _, text = theirs.partition("  ->  ")
    return "has been modified inplace" in text and ours == f"{line}  ->  error"


def shrunk(program: list[str], fails: Any) -> list[str]:
    """A shorter program that still fails: without each line that it does not need."""
    position = len(program) - 1
    while position >= 0:
        shorter = program[:position] + program[position + 1 :]
        if fails(shorter):
            program = shorter
        position -= 1
    return program
