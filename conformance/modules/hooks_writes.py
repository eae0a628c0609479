"""In-place writes on what goes into modules with full backward hooks, and on what comes out."""

from __future__ import annotations

from .hooks_modules import module, shown, tensors

REGISTER = ("register_full_backward_hook", "register_full_backward_pre_hook")
WRITES = {
    "plain": lambda t, x: x.mul_(2),
    "recorded": lambda t, x: x.mul_(t.ones(3, requires_grad=True)),
    "of a part": lambda t, x: x[:2].mul_(2),
    "by an index": lambda t, x: x.__setitem__(0, 5.0),
    "unrecorded": lambda t, x: _without_grad(t, lambda: x.mul_(2)),
    "of the data": lambda t, x: x.data.mul_(2),
    "detached": lambda t, x: x.detach().mul_(2),
    "detach_": lambda t, x: x.detach_(),
    "requires_grad_": lambda t, x: x.requires_grad_(),
    "by relu_": lambda t, x: t.relu_(x),
    "by out=": lambda t, x: _without_grad(t, lambda: t.add(x, 1, out=x)),
}
INPUTS = {
    "a leaf": lambda t: t.ones(3, requires_grad=True),
    "a result": lambda t: t.ones(3, requires_grad=True) * 2,
    "a view": lambda t: (t.ones(2, 3, requires_grad=True) * 2)[0],
    "a view of a leaf": lambda t: t.ones(2, 3, requires_grad=True)[0],
    "a constant": lambda t: t.ones(3),
    "a view of a constant": lambda t: t.ones(2, 3)[1],
    "a view that learns of a constant": lambda t: t.ones(2, 3)[1].requires_grad_(),
}


def _without_grad(t, write):
    with t.no_grad():
        return write()


def _attempt(run):
    try:
        return shown(run())
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]


def _all_writes(t, run):
    return {name: _attempt(lambda write=write: run(write)) for name, write in WRITES.items()}


def _after_backward(t, out, *inputs):
    parts = [part for part in tensors(out) if part.requires_grad]
    if parts:
        sum(part.sum() for part in parts).backward()
    return [(part, part._version) for part in (*tensors(out), *inputs)]


def of_an_output(t, see):
    found = []
    for register in REGISTER:

        def run(write, register=register):
            x = t.ones(3, requires_grad=True)
            made = module(t, lambda x: x * 2)
            getattr(made, register)(see("hook"))
            out = made(x)
            write(t, out)
            return _after_backward(t, out, x), x.grad

        found.append(_all_writes(t, run))
    return found


def of_one_of_two_outputs(t, see):
    return _of_either_output(t, see, lambda x: (x * 2, x * 3))


def of_an_output_next_to_a_constant(t, see):
    return _of_either_output(t, see, lambda x: (x * 2, t.ones(3)))


def _of_either_output(t, see, forward):
    found = []
    for place in (0, 1):

        def run(write, place=place):
            x = t.ones(3, requires_grad=True)
            made = module(t, forward)
            made.register_full_backward_hook(see("hook"))
            out = made(x)
            write(t, out[place])
            return _after_backward(t, out, x), x.grad

        found.append(_all_writes(t, run))
    return found


def of_an_only_input_within(t, see):
    found = []
    for name, make in INPUTS.items():

        def run(write, make=make):
            x = make(t)

            def forward(x):
                write(t, x)
                return x * 2

            made = module(t, forward)
            made.register_full_backward_hook(see("hook"))
            return _after_backward(t, made(x), x)

        found.append((name, _all_writes(t, run)))
    return found


def of_one_of_two_inputs_within(t, see):
    found = []
    for name, make in INPUTS.items():
        for other, make_other in INPUTS.items():

            def run(write, make=make, make_other=make_other):
                x = make(t)

                def forward(y, x):
                    write(t, x)
                    return x * 2 + y

                made = module(t, forward)
                made.register_full_backward_hook(see("hook"))
                return _after_backward(t, made(make_other(t), x), x)

            found.append((name, other, _all_writes(t, run)))
    return found


def of_an_input_afterwards(t, see):
    found = []
    for name, make in INPUTS.items():

        def run(write, make=make):
            x, y = make(t), t.ones(3, requires_grad=True)
            made = module(t, lambda x, y: x.exp() * y)
            made.register_full_backward_hook(see("hook"))
            out = made(x, y)
            write(t, x)
            return _after_backward(t, out, x), y.grad

        found.append((name, _all_writes(t, run)))
    return found


def of_an_output_that_is_the_input(t, see):
    def run(write):
        x = t.ones(3, requires_grad=True) * 1
        made = module(t, lambda x: x)
        made.register_full_backward_hook(see("hook"))
        out = made(x)
        write(t, out)
        return _after_backward(t, out, x)

    return _all_writes(t, run)


def by_an_inplace_layer_in_front_and_behind(t, see):
    found = []
    for build in (
        lambda nn: nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True)),
        lambda nn: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 3)),
    ):
        for hooked in (0, 1, None):

            def run(build=build, hooked=hooked):
                t.manual_seed(0)
                net = build(t.nn)
                (net if hooked is None else net[hooked]).register_full_backward_hook(see("hook"))
                x = t.ones(2, 3, requires_grad=True)
                net(x * 2).sum().backward()
                return x.grad.shape

            found.append(_attempt(run))
    return found


def without_recording(t, see):
    found = []
    for mode in (t.no_grad, t.inference_mode):

        def run(write, mode=mode):
            x = t.ones(3, requires_grad=True) * 1
            made = module(t, lambda x: x * 2)
            made.register_full_backward_hook(see("hook"))
            with mode():
                out = made(x)
                write(t, out)
            return out, out.requires_grad

        found.append(_all_writes(t, run))
    return found
