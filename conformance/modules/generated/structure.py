"""Statements that make, change, copy and ask modules."""

from __future__ import annotations

from .drawing import CONTAINERS, Drawing, Refused, dotted, nn

LAYERS = (
    "nn.Linear(3, 3)", "nn.Linear(3, 3)", "nn.Linear(3, 3, bias=False)", "nn.LayerNorm(3)",
    "nn.BatchNorm1d(3)", "nn.Identity()", "nn.ReLU()", "nn.Dropout(0.5)", "nn.Tanh()",
    "nn.PReLU()", "nn.Softmax(-1)", "nn.GroupNorm(1, 3)", "nn.LazyLinear(3)", "nn.Sequential()",
    "nn.BatchNorm1d(3, affine=False)", "nn.BatchNorm1d(3, track_running_stats=False)", "nn.ELU()",
    "nn.Hardtanh()", "nn.LazyBatchNorm1d()", "nn.RMSNorm(3)", "nn.LeakyReLU(0.1, inplace=True)",
)  # fmt: skip
OWN = (
    "Net()", "Net()", "Net(4)", "Tied()", "Lonely()", "Same()", "Two()", "Many()", "Many('list')",
    "Many('dict')", "Many('pair')", "Many('mixed')", "Words()", "Written()", "Written('before')",
    "Counted()", "Extra()", "Slots()",
)  # fmt: skip
RARE = (
    "nn.LSTM(3, 3)", "nn.GRU(3, 3, batch_first=True)", "nn.RNN(3, 3, num_layers=2)",
    "nn.LSTMCell(3, 3)", "nn.Embedding(5, 3)", "nn.EmbeddingBag(5, 3)", "nn.Bilinear(3, 3, 3)",
    "nn.Conv1d(2, 2, 3)", "nn.Conv2d(1, 2, 1)", "nn.ConvTranspose1d(2, 2, 1)",
    "nn.MultiheadAttention(3, 1)", "nn.TransformerEncoderLayer(3, 1, 4)", "nn.MSELoss()",
    "nn.LazyConv1d(2, 1)", "nn.Flatten()", "nn.Unflatten(0, (1, 2))", "nn.CrossEntropyLoss()",
    "nn.ParameterList([torch.ones(2), nn.Parameter(torch.ones(1))])", "nn.InstanceNorm1d(3)",
    "nn.ParameterDict({'z': torch.ones(2), 'a': nn.Parameter(torch.ones(1))})",
    "nn.ParameterDict([('z', torch.ones(2)), ('a', torch.ones(1))])", "nn.ParameterDict()",
    "nn.ModuleDict()", "nn.ModuleList()", "nn.ParameterList()", "nn.SyncBatchNorm(3)",
)  # fmt: skip
KINDS = ("torch.float64", "torch.float32", "torch.bfloat16", "torch.float16", "torch.int64",
         "torch.complex64")  # fmt: skip


class Structure:
    """Modules and what is in them."""

    def __init__(self, program: Drawing) -> None:
        self.p = program
        self.kinds = [
            (self.make, 2.0), (self.container, 3.0), (self.assign, 3.0), (self.register, 1.5),
            (self.forget, 1.0), (self.convert, 2.0), (self.copied, 1.5), (self.ask, 2.5),
            (self.state_dict, 2.0), (self.load, 2.0), (self.state_edit, 1.0), (self.initial, 1.5),
            (self.pruned, 2.0), (self.parametrized, 2.5), (self.normalized, 1.2), (self.lazy, 0.8),
            (self.vectors, 0.6),
        ]  # fmt: skip

    # ---- making

    def layer(self) -> str:
        return self.p.random.choice(LAYERS + OWN[:6])

    def make(self) -> str:
        p = self.p
        form = p.random.random()
        if form < 0.35:
            text = p.random.choice(OWN)
        elif form < 0.6:
            text = p.random.choice(LAYERS)
        elif form < 0.7:
            text = p.random.choice(RARE)
        elif form < 0.9:
            text = f"nn.Sequential({', '.join(self.layer() for _ in range(p.one(1, 2, 2, 3)))})"
        else:
            text = p.one(
                f"nn.Sequential(OrderedDict([('a', {self.layer()}), ('b', {self.layer()})]))",
                f"nn.ModuleList([{self.layer()}, {self.layer()}])",
                f"nn.ModuleDict({{'z': {self.layer()}, 'a': {self.layer()}}})",
                f"nn.ModuleDict([('z', {self.layer()}), ('a', {self.layer()})])",
                f"utils.skip_init(nn.Linear, 3, 3).requires_grad_({p.one(True, False)})",
            )
            if "skip_init" in text:
                text = "nn.Linear(3, 3, dtype=torch.float64)"
        return f"{p.new_name('m')} = {text}"

    def value(self) -> str:
        """What an attribute is set to."""
        p = self.p
        return p.one(
            "None", "None", f"nn.Parameter(batch({p.seed()}, (3, 3)))", f"batch({p.seed()}, (3,))",
            f"nn.Parameter(batch({p.seed()}, (3,)), requires_grad=False)", self.layer(), "1.5",
            f"nn.Parameter(batch({p.seed()}, (3,)))", "'text'", f"nn.Buffer(batch({p.seed()}))",
            f"nn.Buffer(batch({p.seed()}), persistent=False)",
        )  # fmt: skip

    def assign(self) -> str:
        p = self.p
        if p.chance(0.3):
            full = p.tensor_of()
            change = p.one(
                ".requires_grad_(False)", ".requires_grad_()", ".data.mul_(2)", ".grad = None",
                ".data = batch(1, (3,))", ".data = {0}.data.double()",
                ".grad = torch.ones_like({0})",
                ".detach().zero_()", ".add_(1)", ".data.fill_(0.5)",
            )  # fmt: skip
            return full + change.format(full)
        text, name = p.attribute()
        if not name.isidentifier():
            return f"setattr({text}, {name!r}, {self.value()})"
        return f"{text}.{name} = {self.value()}"

    def register(self) -> str:
        p = self.p
        text, name = p.attribute()
        name = p.one(name, name, "new", "fresh", "", "a.b", "forward")
        batch = f"batch({p.seed()}, (3,))"
        return p.one(
            f"{text}.register_buffer({name!r}, {batch})",
            f"{text}.register_buffer({name!r}, {p.one(batch, 'None', '1')}, persistent=False)",
            f"{text}.register_parameter({name!r}, {p.one('nn.Parameter(' + batch + ')', 'None')})",
            f"{text}.register_parameter({name!r}, {batch})",
            f"{text}.add_module({name!r}, {self.value()})",
            f"{text}.register_module({name!r}, {self.layer()})",
            f"{text}.set_submodule({name!r}, {self.layer()})",
        )  # fmt: skip

    def forget(self) -> str:
        p = self.p
        text, name = p.attribute()
        return f"delattr({text}, {name!r})"

    # ---- containers

    def container(self) -> str:
        p = self.p
        kind = p.one(
            nn.Sequential, nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.ParameterList,
            nn.ParameterDict,
        )  # fmt: skip
        m = p.module(kind)
        if kind in (nn.Sequential, nn.ModuleList):
            return self._listed(m)
        if kind is nn.ParameterList:
            return self._parameters(m)
        return self._keyed(m, kind is nn.ParameterDict)

    def _listed(self, m: str) -> str:
        p = self.p
        layer, place = self.layer(), p.one(0, 1, -1, 2, -2, 5)
        return p.one(
            f"{m}.append({layer})", f"{m}.insert({place}, {layer})",
            f"{m}.extend([{layer}, {self.layer()}])", f"{m}.extend({m})", f"{m}.pop({place})",
            f"{p.new_name('m')} = {m}.pop({place})", f"del {m}[{place}]", f"del {m}[1:]",
            f"{m}[{place}] = {layer}", f"{p.new_name('m')} = {m}[{place}]",
            f"{p.new_name('m')} = {m}[:{place}]", f"{p.new_name('m')} = {m} + {m}",
            f"{p.new_name('m')} = {m} * 2", f"{m} += {m}", f"{m} *= 2",
            f"{m}.add_module('named', {layer})", f"note(len({m}), [type(i).__name__ for i in {m}])",
            f"{m}.insert({place}, None)", f"{m}.append(None)", f"{m}[{place}] = 3",
            f"{p.new_name('m')} = {m} + [{layer}]", f"{p.new_name('m')} = nn.Sequential(*{m})",
            f"del {m}[{place}:]", f"note(dir({m})[:3])", f"note(list(reversed({m}))[0])",
        )  # fmt: skip

    def _parameters(self, m: str) -> str:
        p = self.p
        value = p.one("nn.Parameter(torch.ones(2))", "torch.ones(1)", "3", "torch.zeros(2)")
        place = p.one(0, 1, -1, 4)
        return p.one(
            f"{m}.append({value})", f"{m}.extend([{value}, {value}])", f"{m}[{place}] = {value}",
            f"{m}.extend({value})", f"{p.new_name('m')} = {m}[:{place}]", f"del {m}[{place}]",
            f"{m} += [{value}]", f"note(len({m}), {m}[{place}])", f"note(str({m}))",
            f"{m}.pop({place})",
        )  # fmt: skip

    def _keyed(self, m: str, of_parameters: bool) -> str:
        p = self.p
        value = self.layer()
        if of_parameters:
            value = p.one("nn.Parameter(torch.ones(2))", "torch.ones(1)", "3", "None")
        key = p.one("a", "b", "z", "new", "y")
        more = [f"{m}.pop({key!r})", f"note(list({m}.items())[:1])", f"note({key!r} in {m})"]
        if of_parameters:
            more += [
                f"{m}.setdefault({key!r}, {value})", f"{p.new_name('m')} = {m} | {m}",
                f"{p.new_name('m')} = {m} | {{'x': {value}, 'b': {value}}}", f"{m}.popitem()",
                f"{m} |= {{'y': {value}, 'c': {value}}}", f"{p.new_name('m')} = {m}.copy()",
                f"{p.new_name('m')} = {m}.fromkeys(['q', 'b'], {value})", f"note({m}.get({key!r}))",
                f"{p.new_name('m')} = {{'y': {value}, 'c': {value}}} | {m}",
            ]  # fmt: skip
        return p.one(
            f"{m}[{key!r}] = {value}", f"{m}.update({{'y': {value}, 'b': {value}}})",
            f"{m}.update([('y', {value}), ('b', {value})])", f"{m}.update({m})",
            f"del {m}[{key!r}]",
            f"{m}.update(OrderedDict(y={value}, b={value}))", f"note(list({m}))", f"{m}.clear()",
            f"note(len({m}), str({m}))", f"{m}.update(3)", f"{m}.update([({key!r},)])", *more,
        )  # fmt: skip

    # ---- all of a module

    def convert(self) -> str:
        p = self.p
        text = p.part()
        kind = p.random.choice(KINDS)
        return text + p.one(
            ".double()", ".half()", ".float()", ".bfloat16()", f".to({kind})", f".to(dtype={kind})",
            ".train()", ".eval()", ".train(False)", ".requires_grad_(False)", ".requires_grad_()",
            ".zero_grad()", ".zero_grad(set_to_none=False)", f".type({kind})", ".cpu()",
            ".to('cpu')", ".to(batch(1))", ".train('yes')", ".to(torch.ones(1, dtype=torch.int))",
            ".apply(lambda m: note(type(m).__name__))",
            ".to(memory_format=torch.channels_last)", ".apply(3)",
        )  # fmt: skip

    def copied(self) -> str:
        p = self.p
        name = p.new_name("m")
        return f"{name} = " + p.one(
            "copy.deepcopy({})", "copy.deepcopy({})", "copy.copy({})", "pickled({})",
        ).format(p.part())  # fmt: skip

    def ask(self) -> str:
        p = self.p
        text, name = p.attribute()
        what = p.one("named_parameters", "named_buffers", "named_modules")
        flags = p.one("", "prefix='p'", "remove_duplicate=False")
        if what != "named_modules" and p.chance(0.3):
            flags = "recurse=False"
        return p.one(
            f"note([n for n, _ in {text}.{what}({flags})])",
            f"note([n for n, _ in {text}.named_children()])",
            f"note({text}.get_parameter({name!r}))", f"note({text}.get_buffer({name!r}))",
            f"note({text}.get_submodule({p.one(name, '', '0', '0.1', 'a.b', None)!r}))",
            f"note(hasattr({text}, {name!r}), {name!r} in dir({text}))",
            f"note(getattr({text}, {name!r}))", f"note({text}.extra_repr())",
            f"note(len(list({text}.parameters())), len(list({text}.modules())))",
            f"note(str({text}))", f"note({text}._get_name())",
            f"note({text}.{name if name.isidentifier() else 'missing'})",
            f"note({text}.get_extra_state())", f"note({text}._version)",
        )  # fmt: skip

    # ---- state

    def state_dict(self) -> str:
        p = self.p
        flags = p.one("", "", "", "keep_vars=True", "prefix='a.'", "destination=OrderedDict()")
        return f"{p.new_name('d')} = {p.part()}.state_dict({flags})"

    def load(self) -> str:
        p = self.p
        flags = p.one("", "", ", strict=False", ", assign=True", ", strict=False, assign=True")
        source = p.state() if p.chance(0.7) else f"{p.part()}.state_dict()"
        text = f"{p.part()}.load_state_dict({source}{flags})"
        return text if p.chance(0.6) else f"note(str({text}))"

    def state_edit(self) -> str:
        p = self.p
        name = p.state()
        keys = [key for key in p.env[name] if isinstance(key, str)]
        if not keys:
            raise Refused("an empty dict")
        key = p.random.choice(keys)
        value = p.one(f"batch({p.seed()})", f"batch({p.seed()}, (3, 3))", "1.0", "None",
                      f"batch({p.seed()}, (3,)).double()", "torch.tensor(2)")  # fmt: skip
        return p.one(
            f"{name}.pop({key!r})", f"{name}[{key!r}] = {value}", f"{name}['other'] = {value}",
            f"{name}['inner.other'] = {value}", f"note(list({name}))", f"{name}._metadata = {{}}",
            f"note(getattr({name}, '_metadata', None))", f"{name}.clear()",
            f"{name}[{key!r}] = {name}[{key!r}] * 2",
        )  # fmt: skip

    # ---- initial values, pruning, parametrizations

    def initial(self) -> str:
        p = self.p
        text, name = p.parameter()
        full = dotted(text, name)
        mode = p.one("fan_in", "fan_out", "wrong")
        return p.one(
            f"init.xavier_uniform_({full})", f"init.xavier_normal_({full}, gain=2.0)",
            f"init.kaiming_uniform_({full}, mode={mode!r})", f"init.zeros_({full})",
            f"init.kaiming_normal_({full}, a=0.1, nonlinearity='leaky_relu')",
            f"init.orthogonal_({full})", f"init.trunc_normal_({full}, std=0.5)",
            f"init.constant_({full}, 0.3)", f"init.eye_({full})", f"init.dirac_({full})",
            f"init.sparse_({full}, 0.5)", f"init.normal_({full}, 1.0, 0.1)",
            f"init.uniform_({full}, -1, 1)", f"init.ones_({full})",
            f"{text}.reset_parameters()", f"note(init.calculate_gain({p.one('tanh', 'x')!r}))",
        )  # fmt: skip

    def pruned(self) -> str:
        p = self.p
        text, name = p.distinct()
        name = name.removesuffix("_orig")
        amount = p.one("0.5", "1", "2", "0.0", "1.5", "True", "-1", "100")
        dim = p.one(0, 1, -1, 3)
        other, second = p.distinct()
        if (other, second) == (text, name):
            raise Refused("twice the same")
        return p.one(
            f"prune.random_unstructured({text}, {name!r}, {amount})",
            f"prune.l1_unstructured({text}, {name!r}, amount={amount})",
            f"prune.random_structured({text}, {name!r}, amount={amount}, dim={dim})",
            f"prune.ln_structured({text}, {name!r}, {amount}, n={p.one(1, 2, 'fro', 'nuc')!r}, "
            f"dim={dim})",
            f"prune.identity({text}, {name!r})", f"prune.remove({text}, {name!r})",
            f"prune.remove({text}, {name!r})",
            f"prune.custom_from_mask({text}, {name!r}, torch.ones_like({text}.{name}) > 0)",
            f"prune.custom_from_mask({text}, {name!r}, torch.zeros_like({text}.{name}))",
            f"prune.global_unstructured([({text}, {name!r}), ({other}, {second!r})], "
            f"prune.L1Unstructured, amount={amount})",
            f"note(prune.is_pruned({text}))",
        )  # fmt: skip

    def parametrized(self) -> str:
        p = self.p
        text, name = p.parameter()
        owner = p.part()
        if isinstance(p.of_part(text), CONTAINERS):
            raise Refused("it has no class of its own")
        known = getattr(p.of_part(owner), "parametrizations", None)
        known = known if isinstance(known, nn.ModuleDict) else {}
        if len(known) and p.chance(0.6):
            inner = p.random.choice(list(known))
            return p.one(
                f"parametrize.remove_parametrizations({owner}, {inner!r})",
                f"parametrize.remove_parametrizations({owner}, {inner!r}, "
                "leave_parametrized=False)",
                f"{owner}.{inner} = batch({p.seed()}, tuple({owner}.{inner}.shape))",
                f"with torch.no_grad():\n    {owner}.{inner} = {owner}.{inner} * 2",
                f"note({owner}.{inner})", f"{owner}.{inner}.data.mul_(2)",
                f"note(type({owner}).__name__, {owner}.parametrizations)",
                f"with parametrize.cached():\n    note({owner}.{inner} is {owner}.{inner})",
                f"parametrize.register_parametrization({owner}, {inner!r}, Doubled())",
                f"del {owner}.{inner}", f"note({owner}.parametrizations.{inner}.is_tensor)",
            )  # fmt: skip
        rule = p.one("Doubled()", "Doubled()", "Squared()", "Symmetric()", "Split()", "Longer()",
                     "nn.Identity()", "3")  # fmt: skip
        flags = p.one("", "", "", ", unsafe=True")
        return p.one(
            f"parametrize.register_parametrization({text}, {name!r}, {rule}{flags})",
            f"parametrize.register_parametrization({text}, {name!r}, {rule}{flags})",
            f"parametrize.register_parametrization({text}, {p.one('missing', 'bias')!r}, {rule})",
            f"note(parametrize.is_parametrized({text}), parametrize.is_parametrized({text}, "
            f"{name!r}))",
        )  # fmt: skip

    def normalized(self) -> str:
        p = self.p
        text, name = p.parameter(p.one(0, 2))
        return p.one(
            f"utils.weight_norm({text}, {name!r}, dim={p.one(0, 1, None)})",
            f"utils.remove_weight_norm({text}, {name!r})",
            f"utils.spectral_norm({text}, {name!r})", f"utils.remove_spectral_norm({text})",
            f"parametrizations.weight_norm({text}, {name!r})",
            f"parametrizations.spectral_norm({text}, {name!r}, n_power_iterations=2)",
            f"parametrizations.orthogonal({text}, {name!r}, "
            f"orthogonal_map={p.one('matrix_exp', 'cayley', 'householder')!r})",
        )  # fmt: skip

    # ---- the rest

    def lazy(self) -> str:
        p = self.p
        made = p.one("nn.LazyLinear(3)", "nn.LazyBatchNorm1d()", "nn.LazyConv1d(2, 1)",
                     "nn.Sequential(nn.LazyLinear(4), nn.LazyLinear(3))")  # fmt: skip
        found = p.names(lambda v: isinstance(v, nn.modules.lazy.LazyModuleMixin))
        if not found or p.chance(0.4):
            return f"{p.new_name('m')} = {made}"
        m = p.random.choice(found)
        return p.one(
            f"note({m}.has_uninitialized_params())", f"{m}.initialize_parameters({p.input()})",
            f"note({m}.weight.shape)",
            f"{m}.weight.materialize((3, 3))\n{m}.weight.data.fill_(1)", f"note(str({m}.weight))",
            f"note({m}.weight + 1)", f"{m}.weight.data = torch.ones(3)",
            f"{m}.weight.requires_grad_()",
            f"{p.new_name('v')} = copy.deepcopy({m}.weight)", f"note({m}.cls_to_become)",
            f"{p.new_name('v')} = nn.UninitializedParameter(dtype=torch.float64)",
            f"{p.new_name('v')} = nn.UninitializedBuffer()", f"note({m}.weight.dtype)",
        )  # fmt: skip

    def vectors(self) -> str:
        p = self.p
        m = p.module()
        return p.one(
            f"{p.new_name('v')} = utils.parameters_to_vector({m}.parameters())",
            f"utils.vector_to_parameters(torch.ones(30), {m}.parameters())",
            f"note(utils.get_total_norm(list({m}.parameters())))",
            f"{p.new_name('m')} = utils.fuse_linear_bn_eval({m}, {p.module()})",
        )  # fmt: skip
