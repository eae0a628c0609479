"""Statements that train: optimizers, schedules, clipping, averages, scalers."""

from __future__ import annotations

from .behaviour import Behaviour
from .drawing import Drawing

KINDS = {
    "SGD": ("momentum=0.9", "weight_decay=0.1", "momentum=0.9, nesterov=True", "dampening=0.5",
            "momentum=0.5, dampening=0.2", "lr=torch.tensor(0.1)"),
    "Adam": ("betas=(0.8, 0.9)", "weight_decay=0.1", "amsgrad=True", "eps=1e-4", "lr=0.5",
             "decoupled_weight_decay=True", "lr=torch.tensor(0.1)"),
    "AdamW": ("weight_decay=0.2", "amsgrad=True"), "Adagrad": ("lr_decay=0.1", "weight_decay=0.1"),
    "Adadelta": ("rho=0.5", "weight_decay=0.1"), "Adamax": ("betas=(0.8, 0.9)", "weight_decay=0.1"),
    "ASGD": ("t0=1.0", "lambd=0.1", "weight_decay=0.1"), "Rprop": ("etas=(0.4, 1.3)",),
    "RMSprop": ("momentum=0.5", "centered=True", "weight_decay=0.1"),
    "NAdam": ("weight_decay=0.1", "decoupled_weight_decay=True"),
    "RAdam": ("weight_decay=0.1", "decoupled_weight_decay=True"), "SparseAdam": ("eps=1e-4",),
    "LBFGS": ("max_iter=2", "line_search_fn='strong_wolfe'", "history_size=1"),
    "Adafactor": ("weight_decay=0.1", "d=0.5"), "Muon": ("momentum=0.8", "nesterov=False"),
}  # fmt: skip
COMMON = ("maximize=True", "foreach=True", "foreach=False", "fused=True", "differentiable=True",
          "capturable=True", "lr=0.0", "lr=-1.0", "lr=1.0", "unknown=3")  # fmt: skip
RATES = (
    "StepLR({0}, 2, 0.5)", "MultiStepLR({0}, [1, 3])", "ExponentialLR({0}, 0.5)",
    "CosineAnnealingLR({0}, 4)", "CosineAnnealingWarmRestarts({0}, 2)", "ConstantLR({0}, 0.5, 2)",
    "LambdaLR({0}, lambda e: 0.9 ** e)", "MultiplicativeLR({0}, lambda e: 0.9)",
    "LinearLR({0}, total_iters=3)", "PolynomialLR({0}, 3)", "ReduceLROnPlateau({0}, patience=0)",
    "OneCycleLR({0}, 1.0, total_steps=5)", "CyclicLR({0}, 0.1, 1.0, 2)",
    "SequentialLR({0}, [schedulers.ConstantLR({0}), schedulers.StepLR({0}, 1)], [2])",
    "ChainedScheduler([schedulers.StepLR({0}, 1), schedulers.ExponentialLR({0}, 0.9)])",
)  # fmt: skip


class Training:
    """Everything that has to do with steps."""

    def __init__(self, program: Drawing, behaviour: Behaviour) -> None:
        self.p = program
        self.loss = behaviour.loss
        self.kinds = [
            (self.make, 2.0), (self.step, 5.0), (self.group, 1.5), (self.zero, 0.7),
            (self.state, 1.5), (self.edit, 1.2), (self.hook, 0.8), (self.schedule, 1.5),
            (self.turn, 2.0), (self.clip, 1.5), (self.average, 1.2), (self.scale, 2.0),
            (self.gradient, 1.5), (self.copied, 0.6), (self.ask, 0.8),
        ]  # fmt: skip

    def make(self) -> str:
        p = self.p
        m = p.module()
        kind = p.random.choice([*KINDS, "SGD", "Adam", "AdamW", "SGD"])
        words = [p.random.choice(KINDS[kind])] if p.chance(0.6) else []
        if p.chance(0.3):
            words.append(p.random.choice(COMMON))
        keys = [word.partition("=")[0] for word in words]
        if kind == "SGD" and "lr" not in keys and p.chance(0.8):
            words.append("lr=0.1")
        if len(set(keys)) < len(keys):
            words = words[:1]
        part = p.tensor_of()
        in_lists = any(word in ("foreach=True", "fused=True") for word in words)
        twice = "[]" if in_lists else f"[{part}, {part}]"  # lists take repeats otherwise
        given = p.one(
            f"{m}.parameters()", f"{m}.parameters()", f"{m}.parameters()",
            f"{m}.named_parameters()",
            f"[{{'params': {m}.parameters()}}, {{'params': [{part}], 'lr': 0.3}}]",
            f"[{part}]", twice, "[]", part,
            f"[{{'params': [{part}], 'weight_decay': 0.5}}]",
        )  # fmt: skip
        return f"{p.new_name('o')} = optim.{kind}({', '.join([given, *words])})"

    def step(self) -> str:
        p = self.p
        o = p.optimizer()
        form = p.random.random()
        if form < 0.25:
            return f"{o}.step()"
        if form < 0.4:
            return f"{o}.step(closure({o}, lambda: {self.loss()}))"
        if form < 0.85:
            return f"{o}.zero_grad()\n{self.loss()}.backward()\n{o}.step()"
        return f"{o}.step(lambda: raises('closure')())"

    def zero(self) -> str:
        return f"{self.p.optimizer()}.zero_grad({self.p.one('', 'set_to_none=False')})"

    def group(self) -> str:
        p = self.p
        o = p.optimizer()
        part = p.tensor_of()
        more = p.one("", ", 'lr': 0.5", ", 'unknown': 1", ", 'weight_decay': 0.2")
        return p.one(
            f"{o}.add_param_group({{'params': {p.module()}.parameters(){more}}})",
            f"{o}.add_param_group({{'params': {part}{more}}})",
            f"{o}.add_param_group({{'params': nn.Parameter(batch({p.seed()}, (3,))){more}}})",
            f"{o}.add_param_group({{'params': [batch(1).requires_grad_() * 2]}})",
            f"{o}.add_param_group([1])", f"{o}.add_param_group({{'params': set()}})",
        )  # fmt: skip

    def state(self) -> str:
        p = self.p
        o = p.optimizer()
        dicts = p.names(lambda v: isinstance(v, dict) and "param_groups" in v)
        if not dicts or p.chance(0.4):
            return f"{p.new_name('d')} = {p.one('', 'copy.deepcopy')}({o}.state_dict())"
        d = p.random.choice(dicts)
        return p.one(
            f"{o}.load_state_dict({d})", f"{o}.load_state_dict({d})",
            f"{d}['param_groups'][0]['lr'] = 0.7", f"{d}['state'].pop(0)",
            f"{d}['param_groups'].pop()", f"note(list({d}['state']))",
        )  # fmt: skip

    def edit(self) -> str:
        p = self.p
        o = p.optimizer()
        part = p.tensor_of()
        return p.one(
            f"{o}.param_groups[0]['lr'] = 0.05", f"{o}.param_groups[0]['maximize'] = True",
            f"{o}.param_groups[0]['params'].pop()", f"{o}.state.clear()", f"{o}.param_groups.pop()",
            f"{o}.param_groups[0]['params'].append({part})", f"{o}.defaults['lr'] = 3.0",
            f"{o}.param_groups[0]['weight_decay'] = 0.3", f"{o}.param_groups[-1]['lr'] *= 2",
        )  # fmt: skip

    def hook(self) -> str:
        p = self.p
        o, h = p.optimizer(), p.new_name("h")
        tell = f"lambda *v: note('{h}', len(v), v[1:])"
        return p.one(
            f"{h} = {o}.register_step_pre_hook({tell})",
            f"{h} = {o}.register_step_post_hook({tell})",
            f"{h} = {o}.register_state_dict_pre_hook({tell})",
            f"{h} = {o}.register_state_dict_post_hook({tell})",
            f"{h} = {o}.register_load_state_dict_pre_hook(lambda o, d: note('{h}', list(d)))",
            f"{h} = {o}.register_load_state_dict_post_hook({tell}, prepend=True)",
        )  # fmt: skip

    def ask(self) -> str:
        o = self.p.optimizer()
        return self.p.one(f"note(str({o}))", f"note({o}.defaults)", f"note(len({o}.param_groups))",
                          f"note([len(s) for s in {o}.state.values()])")  # fmt: skip

    def copied(self) -> str:
        p = self.p
        name = p.one(p.optimizer, p.scheduler, p.scaler)()
        return f"{p.new_name(name[0])} = {p.one('copy.deepcopy', 'pickled')}({name})"

    # ---- schedules

    def schedule(self) -> str:
        p = self.p
        rate = p.random.choice(RATES).format(p.optimizer())
        if p.chance(0.1):
            rate = rate[:-1] + f", last_epoch={p.one(0, 1)})"
        return f"{p.new_name('s')} = schedulers.{rate}"

    def turn(self) -> str:
        p = self.p
        s = p.scheduler()
        return p.one(
            f"{s}.step()", f"{s}.step()", f"{s}.step()", f"{s}.step(1.0)", f"{s}.step(3)",
            f"note({s}.get_last_lr())", f"{p.new_name('d')} = {s}.state_dict()",
            f"{s}.load_state_dict({p.state()})", f"{p.optimizer()}.step()\n{s}.step()",
            f"note({s}.get_lr())",
        )  # fmt: skip

    # ---- gradients

    def gradient(self) -> str:
        p = self.p
        part = p.tensor_of()
        return f"{part}.grad = " + p.one(
            f"torch.ones_like({part})", f"torch.full_like({part}, float('nan'))",
            f"torch.full_like({part}, float('inf'))", f"torch.zeros_like({part})", "None",
            f"batch({p.seed()}, tuple({part}.shape))", f"{part}.detach().to_sparse()",
            f"{part}.detach().half()", "torch.ones(2)", f"{part}.detach() * 100",
        )  # fmt: skip

    def clip(self) -> str:
        p = self.p
        given = p.one(f"{p.module()}.parameters()", f"list({p.module()}.parameters())", "[]",
                      p.tensor(lambda v: v.requires_grad))  # fmt: skip
        norm = p.one("", "", ", norm_type=1", ", norm_type='inf'", ", norm_type=0.5")
        more = p.one("", "", ", error_if_nonfinite=True", ", foreach=True", ", foreach=False")
        return p.one(
            f"{p.new_name('v')} = utils.clip_grad_norm_({given}, 0.5{norm}{more})",
            f"{p.new_name('v')} = utils.clip_grad_norm_({given}, 0.5{norm}{more})",
            f"utils.clip_grad_value_({given}, {p.one('0.1', '-1', 'True')}"
            f"{p.one('', ', foreach=True', ', foreach=False')})",
        )  # fmt: skip

    def average(self) -> str:
        p = self.p
        m = p.module()
        found = p.names(lambda v: hasattr(v, "update_parameters"))
        if not found or p.chance(0.3):
            more = p.one("", "", ", multi_avg_fn=swa.get_ema_multi_avg_fn(0.9)",
                         ", use_buffers=True",
                         ", avg_fn=swa.get_ema_avg_fn(0.5)",
                         ", avg_fn=lambda a, b, n: a + b")  # fmt: skip
            return f"{p.new_name('a')} = swa.AveragedModel({m}{more})"
        a = p.random.choice(found)
        return p.one(
            f"{a}.update_parameters({a}.module)", f"{a}.update_parameters({m})",
            f"swa.update_bn([batch({p.seed()}), batch({p.seed()})], {p.one(a, m)})",
            f"{p.new_name('s')} = swa.SWALR({p.optimizer()}, 0.5, anneal_epochs=2)",
            f"{p.new_name('y')} = {a}({p.input()})", f"{a}.load_state_dict({a}.state_dict())",
        )  # fmt: skip

    # ---- scalers

    def scale(self) -> str:
        p = self.p
        found = p.names(lambda v: hasattr(v, "get_scale"))
        if not found or p.chance(0.15):
            more = p.one("", ", init_scale=4.0", ", growth_interval=1", ", enabled=False",
                         ", init_scale=2.0, growth_interval=1", ", backoff_factor=1.5")  # fmt: skip
            return f"{p.new_name('c')} = torch.amp.GradScaler('cpu'{more})"
        c, o = p.random.choice(found), p.optimizer()
        return p.one(
            f"{o}.zero_grad()\n{c}.scale({self.loss()}).backward()\n{c}.step({o})\n{c}.update()",
            f"{c}.scale({self.loss()}).backward()", f"{c}.unscale_({o})", f"{c}.step({o})",
            f"{c}.update()", f"{c}.update({p.one('3.0', 'torch.tensor(2.0)')})",
            f"note({c}.step({o}))", f"{p.new_name('d')} = {c}.state_dict()",
            f"{c}.load_state_dict({p.state()})",
        )  # fmt: skip
