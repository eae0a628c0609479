"""`torch._C._functorch`: which transform a tensor belongs to, asked inside of it."""

import importlib

import pytest
import torch

import flambeau

NAMES = "grad vmap jvp jacrev jacfwd vjp hessian".split()
USES = {
    "none": "ask(x)",
    "leaf": "ask(x.clone().requires_grad_())",
    "grad": "grad(ask)(x)",
    "vmap": "vmap(ask)(xs)",
    "jvp": "jvp(ask, (x,), (x,))",
    "dual": "dual(ask)",
    "jacrev": "jacrev(ask)(x)",
    "jacfwd": "jacfwd(ask)(x)",
    "vjp": "vjp(ask, x)",
    "vmap of grad": "vmap(grad(ask))(xs)",
    "grad of vmap": "grad(lambda v: vmap(ask)(v).sum())(xs)",
    "vmap of jvp": "vmap(lambda v: jvp(ask, (v,), (v,))[1])(xs)",
    "jvp of vmap": "jvp(vmap(ask), (xs,), (xs,))",
    "grad of grad": "grad(lambda v: grad(ask)(v).sum())(x)",
    "grad, other": "grad(lambda v: ask(x) + v.sum())(x)",
    "grad, computed": "grad(lambda v: ask(2 * v))(x)",
    "hessian": "hessian(ask)(x)",
}


def told(library, use):
    asked = importlib.import_module(f"{library.__name__}._C._functorch")
    answers = []

    def ask(tensor):
        answers.append((asked.is_gradtrackingtensor(tensor), asked.is_batchedtensor(tensor)))
        return tensor.square().sum()

    def dual(function):
        forward = library.autograd.forward_ad
        with forward.dual_level():
            function(forward.make_dual(library.ones(2), library.ones(2)))

    scope = {name: getattr(library.func, name) for name in NAMES}
    scope = {**scope, "ask": ask, "dual": dual, "x": library.ones(2), "xs": library.ones(3, 2)}
    eval(use, scope)
    return answers


@pytest.mark.parametrize("use", USES)
def test_tracking(use):
    theirs, ours = (told(library, USES[use]) for library in (torch, flambeau))
    # How often a function is called is the transform's own business.
    assert set(ours) == set(theirs)


@pytest.mark.parametrize("value", [3, None, "x"])
def test_what_is_no_tensor(value):
    messages = []
    for library in (torch, flambeau):
        asked = importlib.import_module(f"{library.__name__}._C._functorch")
        with pytest.raises(TypeError) as found:
            asked.is_gradtrackingtensor(value)
        messages.append(str(found.value))
    assert messages[1] == messages[0]
