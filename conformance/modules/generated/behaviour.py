"""Statements that run modules: calls, hooks, regions, gradients."""

from __future__ import annotations

from .drawing import Drawing, Refused, nn

REGIONS = (
    "torch.no_grad()", "torch.no_grad()", "torch.inference_mode()", "torch.enable_grad()",
    "torch.autocast('cpu')", "torch.autocast('cpu')", "torch.autocast('cpu', torch.float16)",
    "torch.autocast('cpu', enabled=False)", "torch.autocast('cpu', cache_enabled=False)",
    "parametrize.cached()", "torch.autograd.set_detect_anomaly(True)",
)  # fmt: skip


class Behaviour:
    """What modules do."""

    def __init__(self, program: Drawing) -> None:
        self.p = program
        self.kinds = [
            (self.call, 6.0), (self.forward_hook, 1.5), (self.backward_hook, 3.0),
            (self.state_hook, 1.0), (self.global_hook, 0.5), (self.unhook, 0.5),
            (self.region, 3.0), (self.backward, 3.0), (self.grads, 1.5), (self.functional, 1.2),
            (self.write, 0.8), (self.checkpoint, 0.5), (self.compute, 1.0),
        ]  # fmt: skip

    def call(self) -> str:
        p = self.p
        m, x = p.part(), p.input()
        value = p.of_part(m)
        if isinstance(value, (nn.LSTM, nn.GRU, nn.RNN, nn.LSTMCell)):
            return f"{p.new_name('y')} = {m}({x})"
        if isinstance(value, (nn.Embedding, nn.EmbeddingBag)):
            return f"{p.new_name('y')} = {m}(torch.tensor([[0, 1], [1, 4]]))"
        if isinstance(value, (nn.Bilinear, nn.MSELoss, nn.CrossEntropyLoss)):
            return f"{p.new_name('y')} = {m}({x}, {p.input()})"
        if isinstance(value, nn.MultiheadAttention):
            return f"{p.new_name('y')} = {m}({x}, {x}, {x})"
        name = type(value).__name__
        if "Two" in name and p.chance(0.8):
            return f"{p.new_name('y')} = {m}({x}, {p.input()})"
        if "Words" in name:
            return f"{p.new_name('y')} = {m}({x}, {p.one('factor=2', f'other={p.input()}')})"
        form = p.one("{m}({x})", "{m}({x})", "{m}({x})", "{m}(x={x})", "{m}.forward({x})", "{m}()",
                     "{m}({x}, 1)", "{m}({x} * 1)")  # fmt: skip
        return f"{p.new_name('y')} = " + form.format(m=m, x=x)

    def inner(self) -> str:
        p = self.p
        kinds = (self.call, self.call, self.call, self.compute, self.backward, self.grads,
                 self.functional, self.write)  # fmt: skip
        return p.random.choice(kinds)()

    def compute(self) -> str:
        p = self.p
        x, y = p.tensor(), p.tensor()
        return f"{p.new_name('y')} = " + p.one(
            f"{x} * {y}", f"{x} @ {y}.mT", f"torch.cat([{x}, {y}])", f"F.linear({x}, {y})",
            f"F.mse_loss({x}, {y})", f"F.softmax({x}, -1)", f"{x}.sum()", f"{x}[0]",
        )  # fmt: skip

    def region(self) -> str:
        p = self.p
        region = p.random.choice(REGIONS)
        inner = "\n".join(self.inner() for _ in range(p.one(1, 1, 2)))
        if "inference" in region and "backward" in inner:
            raise Refused("gradients that are inference tensors")
        indented = "\n".join("    " + line for line in inner.splitlines())
        return f"with {region}:\n{indented}"

    # ---- hooks

    def forward_hook(self) -> str:
        p = self.p
        m, h = p.part(), p.new_name("h")
        flags = p.one("", "", ", prepend=True", ", with_kwargs=True", ", always_call=True")
        change = p.one(f"told('{h}')", f"told('{h}')", f"replaced('{h}', 2)", f"raises('{h}')",
                       "lambda *v: 3" if p.chance(0.2) else f"told('{h}')")  # fmt: skip
        before = "" if "always" in flags else flags
        return p.one(
            f"{h} = {m}.register_forward_hook({change}{flags})",
            f"{h} = {m}.register_forward_hook({change}{flags})",
            f"{h} = {m}.register_forward_pre_hook({change}{before})",
        )  # fmt: skip

    def backward_hook(self) -> str:
        p = self.p
        m, h = p.part(), p.new_name("h")
        tell = p.one(
            f"told('{h}')", f"told('{h}')", f"told('{h}')",
            f"lambda m, i, o: replaced('{h}', 2)(m, i)",
            f"lambda m, i, o: added('{h}')(m, i)", "lambda m, i, o: i[0]", "lambda m, i, o: 3",
            "lambda m, i, o: (None,) * len(i)", f"raises('{h}')",
        )  # fmt: skip
        before = p.one(f"told('{h}')", f"replaced('{h}', 2)", f"added('{h}')", "lambda m, o: o[0]",
                       "lambda m, o: (None,) * len(o)")  # fmt: skip
        prepend = p.one("", "", "", ", prepend=True")
        return p.one(
            f"{h} = {m}.register_full_backward_hook({tell}{prepend})",
            f"{h} = {m}.register_full_backward_hook({tell})",
            f"{h} = {m}.register_full_backward_pre_hook({before}{prepend})",
            f"{h} = {m}.register_backward_hook({tell})",
        )  # fmt: skip

    def state_hook(self) -> str:
        p = self.p
        m, h = p.part(), p.new_name("h")
        old, new = p.one(("weight", "kept"), ("kept", "weight"), ("bias", "b"))
        tell = f"lambda *v: note('{h}', [type(i).__name__ for i in v])"
        return p.one(
            f"{h} = {m}.register_state_dict_pre_hook({tell})",
            f"{h} = {m}.register_state_dict_post_hook(renamed({old!r}, {new!r}))",
            f"{h} = {m}._register_state_dict_hook(renamed({old!r}, {new!r}))",
            f"{h} = {m}.register_load_state_dict_pre_hook(renamed({old!r}, {new!r}))",
            f"{h} = {m}._register_load_state_dict_pre_hook({tell}, with_module=True)",
            f"{h} = {m}.register_load_state_dict_post_hook({tell})",
            f"{h} = {m}.register_load_state_dict_post_hook(lambda m, k: k.missing_keys.clear())",
        )  # fmt: skip

    def global_hook(self) -> str:
        h = self.p.new_name("h")
        tell = f"lambda m, *v: note('{h}', type(m).__name__, *v)"
        named = f"lambda m, *v: note('{h}', type(m).__name__, v[0])"
        return self.p.one(
            f"{h} = everywhere('forward', {tell})",
            f"{h} = everywhere('forward_pre', {tell})",
            f"{h} = everywhere('full_backward', {tell})",
            f"{h} = everywhere('full_backward_pre', {tell})",
            f"{h} = everywhere('parameter_registration', {named})",
            f"{h} = everywhere('buffer_registration', {named})",
            f"{h} = everywhere('module_registration', {named})",
        )  # fmt: skip

    def unhook(self) -> str:
        h = self.p.named(lambda v: hasattr(v, "hooks_dict_ref"))
        return f"{h}.remove()"

    # ---- gradients

    def loss(self) -> str:
        p = self.p
        found = p.names(_learns)
        if found and p.chance(0.7):
            return f"ends_in({p.random.choice(found)})"
        return f"ends_in({p.module()}({p.input()}))"

    def backward(self) -> str:
        p = self.p
        words = p.one("", "", "", "retain_graph=True", "create_graph=True", "retain_graph=True")
        if p.chance(0.1):
            words = f"inputs=[{p.tensor_of()}]"
        return f"{self.loss()}.backward({words})"

    def grads(self) -> str:
        p = self.p
        end = self.loss()
        inner = p.one("create_graph=True", "create_graph=True", "retain_graph=True")
        target = p.one(p.tensor_of(), f"list({p.module()}.parameters())",
                       p.tensor(lambda v: v.requires_grad))  # fmt: skip
        return (
            f"{p.new_name('g')} = torch.autograd.grad({end}, {target}, {inner}, allow_unused=True)"
        )

    def functional(self) -> str:
        p = self.p
        m = p.module()
        flags = p.one("", "", ", tie_weights=False", ", strict=True")
        given = p.one(
            f"dict({m}.named_parameters())", f"{m}.state_dict()", "{}",
            "{'missing': torch.ones(3)}",
            f"{{k: v * 2 for k, v in {m}.named_parameters()}}",
            f"({m}.state_dict(), dict({m}.named_buffers()))",
        )  # fmt: skip
        return f"{p.new_name('y')} = functional_call({m}, {given}, ({p.input()},){flags})"

    def write(self) -> str:
        p = self.p
        y = p.tensor()
        return p.one(f"{y}.mul_(2)", f"{y}[0] = 1", f"{y}.view(-1)[:1].zero_()", f"{y}.detach_()",
                     f"{y}.retain_grad()", f"{y}.requires_grad_()", f"{y}.add_({p.tensor()})",
                     f"note({y}.grad)", f"{y}.register_hook(told('{y}'))")  # fmt: skip

    def checkpoint(self) -> str:
        p = self.p
        kind = p.one("False", "False", "True")
        return (f"{p.new_name('y')} = torch.utils.checkpoint.checkpoint({p.module()}, {p.input()}, "
                f"use_reentrant={kind})")  # fmt: skip


def _learns(value: object) -> bool:
    """Whether something is a result that has a history."""
    if isinstance(value, (tuple, list)):
        return any(map(_learns, value))
    return isinstance(value, nn.Parameter.__mro__[1]) and value.requires_grad
