"""Numbers beside tensors whose type cannot hold them, and how errors call what was called."""

import warnings

import pytest
import torch

import flambeau

NUMBERS = (1e20, 1e200, -1e200, 2**40, -(2**40), 300, -300, 2**70, 1j, 1.5, -1.5)
TYPES = ("float32", "float64", "float16", "bfloat16", "int32", "uint8", "int64", "complex64")
CALLS = (
    "torch.add(x, x, alpha=n)",
    "torch.sub(x, 1, alpha=n)",
    "x.clone().add_(x, alpha=n)",
    "torch.addcmul(x, x, x, value=n)",
    "torch.addcdiv(x, x, x, value=n)",
    "torch.addmm(m, m, m, alpha=n)",
    "torch.addmm(m, m, m, beta=n)",
    "torch.addmv(x, m, x, alpha=n)",
    "torch.addr(m, x, x, beta=n)",
    "torch.baddbmm(m[None], m[None], m[None], alpha=n)",
    "torch.addbmm(m, m[None], m[None], beta=n)",
    "torch.lerp(x, x, n)",
    "torch.clamp_min(x, n)",
    "torch.pow(x, n)",
    "torch.nn.functional.leaky_relu(x, n)",
)


def answer(text, library, dtype, number):
    names = {"torch": library, "n": number}
    names["x"] = library.ones(2).to(getattr(library, dtype))
    names["m"] = library.ones(2, 2).to(getattr(library, dtype))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(text, names)
    except Exception as error:
        return type(error).__name__, str(error).partition("\n")[0]
    return str(result.dtype), str(result.tolist())


@pytest.mark.parametrize("text", CALLS)
@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_beyond_the_type(text, dtype):
    different = [
        number
        for number in NUMBERS
        if answer(text, flambeau, dtype, number) != answer(text, torch, dtype, number)
    ]
    assert not different


WRONG = (
    "torch.arccos(3)", "torch.sin_(3)", "torch.concat(3)", "torch.special.expit('a')",
    "torch.linalg.matmul(3, x)", "torch.select_copy(x, 'a', 0)", "torch.addmv_(3, x, x)",
    "torch.index_put_(3, [x], x)", "torch.xlogy_(x, 'a')", "torch.special.xlogy(x, 'a')",
    "torch.bernoulli('a')", "torch.median(3)", "x.median('a')", "x.round(decimals='a')",
    "x.div('a')", "x.div_(None)", "x.multiply('a')", "torch.subtract('a', x)",
    "torch.floor_divide(x, 'a')", "torch.squeeze(3)",
    "torch.trapz(3)", "torch.dsplit(3, 1)", "torch.where(3, x, x)", "torch.lerp('a', x)",
    "torch.nn.functional.conv_transpose1d(3, x)", "torch.hann_window('a', False)",
    "x.view(np.ones(2))", "torch.clip(x, max='a')",
)  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_errors_name_what_was_called(text):
    import numpy as np

    found = []
    for library in (flambeau, torch):
        with pytest.raises(TypeError) as caught, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(text, {"torch": library, "x": library.ones(2), "np": np})
        found.append(str(caught.value).partition("\n")[0])
    assert found[0] == found[1]
