"""The rows of operators over lists of tensors.

Each works on one tensor of a list after the other, as PyTorch does on processors, by the operator
for single tensors, which knows types, shapes and gradients. The forms in place (`_foreach_add_`)
write to the tensors and give back the list that they got.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from flambeau._ops.foreach.history import Calls, learns, title, together
from flambeau._ops.foreach.lists import (
    check_alike,
    check_filled,
    check_numbers,
    check_single,
    unpacked,
)
from flambeau._ops.table import binder
from flambeau._ops.table.elementwise_path import make_inplace
from flambeau._ops.table.namespace import get, get_inplace
from flambeau._ops.table.op import BY_NAME, REGISTRY, Op, composite
from flambeau._ops.table.outputs import tensors_in
from flambeau._ops.table.schema import REQUIRED
from flambeau._ops.table.unformulated import WRITING_LISTS, recorded, stop
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.autograd.history import check_inplace

Each = Callable[[Any], Calls]
"""From the arguments of a call to those for each single tensor."""

UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)
BINARY = "add sub mul div clamp_max clamp_min maximum minimum"
WITH_ALPHA = ("add", "sub")
WITH_TENSOR = ("add", "mul", "div")
TERNARY = "addcdiv addcmul"
WITH_NUMBER = {
    "add": "_plus_number", "sub": "_minus_number", "mul": "_times_number", "div": "_over_number",
}  # fmt: skip
"""What writes where a history is kept, which has nothing but the number."""
SINGLE = {"maximum": "clamp_min", "minimum": "clamp_max"}
"""What takes a number where the operator for single tensors does not."""


def declare(name: str, overload: str, parameters: str, each: Each, single: str = "",
            derived: bool = True) -> None:  # fmt: skip
    """The row `_foreach_<name>` of an overload and the one in place.

    `each`: of the arguments, by names, the arguments for the single tensors; `single`: the operator
    for these, if it has another name; `derived`: whether there is a gradient.
    """
    of_one = single or name
    dotted = f".{overload}" if overload else ""
    named = title(name, overload)

    def apart(*args: Any, **words: Any) -> Any:
        given = bound(row, args, words)
        if derived:
            return together(named, get(of_one), list(given.values()), each(given))
        with no_grad():
            results = tuple([get(of_one)(*own, **more) for own, more in each(given)])
        return recorded(results, [one for v in given.values() for one in tensors_in([v])],
                        f"_foreach_{name}")  # fmt: skip

    def in_place(*args: Any, **words: Any) -> Any:
        given = bound(writing, args, words)
        if not derived and learns(list(given.values())):
            return write_without_formula(given, writer(of_one), each(given), f"_foreach_{name}_")
        function = writer(of_one)
        if name in WITH_NUMBER and overload in ("Scalar", "ScalarList") and learns([given["self"]]):
            function = get_inplace(WITH_NUMBER[name])
        for own, more in each(given):
            function(*own, **more)
        return given["self"]

    apart.__name__, in_place.__name__ = f"_foreach_{name}", f"_foreach_{name}_"
    apart.__doc__ = f"`{of_one}` of each tensor of a list."
    in_place.__doc__ = f"`{of_one}_` of each tensor of a list."
    # a list without elements is taken for one of numbers; a tensor without dims for a factor, but
    # for a number that is added
    order = int(overload == "List" or (overload == "Scalar" and name in ("mul", "div")))
    row = composite(f"_foreach_{name}{dotted}({parameters}) -> Tensor[]", method=False,
                    order=order)(apart)  # fmt: skip
    written = parameters.replace("Tensor[] self", "Tensor(a!)[] self")
    if written != parameters:
        writing = composite(f"_foreach_{name}_{dotted}({written}) -> Tensor[]", method=False,
                            order=order)(in_place)  # fmt: skip


def write_without_formula(given: Any, function: Callable[..., Any], calls: Calls, name: str) -> Any:
    """Write to the tensors of a list; a backward pass that gets to them raises."""
    for tensor in given["self"]:
        check_inplace(tensor, recorded=True)
    with no_grad():
        for own, more in calls:
            function(*own, **more)
    others = [one for key, value in given.items() if key != "self" for one in tensors_in([value])]
    for tensor in given["self"]:
        stop(tensor, [tensor, *others], name, WRITING_LISTS)
    return given["self"]


def listed(schema: str) -> Callable[[Callable[..., Any]], Op]:
    """A row whose body gets arguments of the right types."""

    def add(body: Callable[..., Any]) -> Op:
        def checked(*args: Any, **words: Any) -> Any:
            return body(**bound(row, args, words))

        checked.__name__, checked.__doc__ = row_name, body.__doc__
        row = composite(schema, method=False)(checked)
        return row

    row_name = schema.partition("(")[0].partition(".")[0]
    return add


def bound(row: Op, args: Any, words: Any) -> dict[str, Any]:
    """The arguments of a call by their names, defaults included; torch's errors for others."""
    places, template, numbers = parameters(row)
    if len(args) > places:
        raise TypeError(
            f"{row.public}() takes {places} positional argument{'s' * (places > 1)} but "
            f"{len(args)} were given"
        )
    given = {**template, **dict(zip(template, args, strict=False)), **words}
    missing = [name for name, value in given.items() if value is REQUIRED]
    if missing:
        raise TypeError(
            f'{row.public}() missing {len(missing)} required positional arguments: "{missing[0]}"'
        )
    unknown = [name for name in words if name not in template]
    if unknown and len(BY_NAME[row.public]) == 1:
        raise TypeError(f"{row.public}() got an unexpected keyword argument '{unknown[0]}'")
    if unknown:
        raise binder.no_overload_error(row.public, BY_NAME[row.public], args, words)
    error = binder.argument_error(row, list(given.values()))
    if error is not None:
        raise error
    for name in numbers:
        if isinstance(given[name], Tensor):
            given[name] = given[name].item()
    return given


@cache
def parameters(row: Op) -> tuple[int, dict[str, Any], list[str]]:
    """How many parameters may be given by position, all with their defaults, and those that are
    numbers."""
    arguments = row.schema.arguments
    numbers = [a.name for a in arguments if a.type == "Scalar" and not a.is_list]
    places = sum(not a.keyword_only for a in arguments)
    return places, {a.name: a.default for a in arguments}, numbers


@cache
def writer(name: str) -> Callable[..., Any]:
    """What writes to a tensor the result of an operator for single tensors."""
    if name in ("maximum", "minimum"):  # which have no form in place that users could call
        get(name)
        return make_inplace(REGISTRY[name])
    return getattr(Tensor, f"{name}_")  # type: ignore[no-any-return]


# ---- arguments for single tensors


def alone(given: Any) -> Any:
    """Each tensor by itself."""
    check_filled(given["self"])
    return [((tensor,), {}) for tensor in given["self"]]


def with_list(other: str) -> Each:
    """Each tensor with its partner in a second list, and the same `alpha`."""

    def each(given: Any) -> Any:
        check_alike(given["self"], given[other])
        more = {"alpha": given["alpha"]} if given.get("alpha", 1) != 1 else {}
        return [(pair, more) for pair in zip(given["self"], given[other], strict=True)]

    return each


def with_number(number: str) -> Each:
    """Each tensor with the same number."""

    def each(given: Any) -> Any:
        check_filled(given["self"])
        return [((tensor, given[number]), {}) for tensor in given["self"]]

    return each


def with_numbers(numbers: str) -> Each:
    """Each tensor with a number of its own."""

    def each(given: Any) -> Any:
        check_numbers(given["self"], given[numbers])
        return [(pair, {}) for pair in zip(given["self"], given[numbers], strict=True)]

    return each


def with_tensor(given: Any) -> Any:
    """Each tensor with the same tensor without dims."""
    check_single(given["other"])
    check_filled(given["self"])
    more = {"alpha": given["alpha"]} if given.get("alpha", 1) != 1 else {}
    return [((tensor, given["other"]), more) for tensor in given["self"]]


def products(values: Callable[[Any], Any]) -> Each:
    """Each tensor with its partners in two lists, and with a factor of `values`."""

    def each(given: Any) -> Any:
        check_alike(given["self"], given["tensor1"], given["tensor2"])
        lists = zip(given["self"], given["tensor1"], given["tensor2"], strict=True)
        return [
            (tensors, {"value": value}) for tensors, value in zip(lists, values(given), strict=True)
        ]

    return each


def same_factor(given: Any) -> Any:
    """The same factor for all."""
    return [given["value"]] * len(given["self"])


def listed_factors(given: Any) -> Any:
    """A factor for each, of a list."""
    check_numbers(given["self"], given["scalars"])
    return given["scalars"]


def packed_factors(given: Any) -> Any:
    """A factor for each, of a tensor."""
    return unpacked(given["self"], given["scalars"])


def between(weights: Callable[[Any], Any]) -> Each:
    """Each tensor with its partner and a weight."""

    def each(given: Any) -> Any:
        check_alike(given["self"], given["tensors1"])
        pairs = zip(given["self"], given["tensors1"], strict=True)
        return [((*pair, weight), {}) for pair, weight in zip(pairs, weights(given), strict=True)]

    return each


def weight_tensors(given: Any) -> Any:
    """A tensor of weights for each."""
    check_alike(given["self"], given["weights"])
    return given["weights"]


def weight_numbers(given: Any) -> Any:
    """A weight for each."""
    check_numbers(given["self"], given["weight"])
    return given["weight"]


def number_to_each(given: Any) -> Any:
    """The same number with each exponent."""
    check_filled(given["exponent"])
    return [((given["self"], exponent), {}) for exponent in given["exponent"]]


# ---- the rows


def _declare_binary(name: str) -> None:
    single = SINGLE.get(name, "")
    declare(name, "Scalar", "Tensor[] self, Scalar scalar", with_number("scalar"), single)
    alpha = ", *, Scalar alpha=1" if name in WITH_ALPHA else ""
    declare(name, "List", f"Tensor[] self, Tensor[] other{alpha}", with_list("other"))
    declare(name, "ScalarList", "Tensor[] self, Scalar[] scalars", with_numbers("scalars"), single)
    if name in WITH_TENSOR:
        alpha = alpha if name == "add" else ""
        declare(name, "Tensor", f"Tensor[] self, Tensor other{alpha}", with_tensor)


for _name in UNARY.split():
    declare(_name, "", "Tensor[] self", alone)
for _name in BINARY.split():
    _declare_binary(_name)
for _name in TERNARY.split():
    _lists = "Tensor[] self, Tensor[] tensor1, Tensor[] tensor2"
    declare(_name, "Scalar", f"{_lists}, Scalar value=1", products(same_factor))
    declare(_name, "ScalarList", f"{_lists}, Scalar[] scalars", products(listed_factors))
    declare(_name, "Tensor", f"{_lists}, Tensor scalars", products(packed_factors),
            derived=False)  # fmt: skip

declare("lerp", "List", "Tensor[] self, Tensor[] tensors1, Tensor[] weights",
        between(weight_tensors))  # fmt: skip
declare("lerp", "Scalar", "Tensor[] self, Tensor[] tensors1, Scalar weight",
        between(lambda given: [given["weight"]] * len(given["self"])))  # fmt: skip
declare("lerp", "ScalarList", "Tensor[] self, Tensor[] tensors1, Scalar[] weight",
        between(weight_numbers))  # fmt: skip
declare("pow", "List", "Tensor[] self, Tensor[] exponent", with_list("exponent"))
declare("pow", "Scalar", "Tensor[] self, Scalar exponent", with_number("exponent"))
declare("pow", "ScalarList", "Tensor[] self, Scalar[] exponent", with_numbers("exponent"))
declare("pow", "ScalarAndTensor", "Scalar self, Tensor[] exponent", number_to_each)


@listed("_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]")
def matrix_products(self: Any, mat2: Any) -> Any:
    """The product of each matrix with its partner in a second list."""
    check_filled(self)
    if len(self) != len(mat2):
        raise RuntimeError("_foreach_mm: self and mat2 must have the same number of tensors")
    calls: Calls = [(pair, {}) for pair in zip(self, mat2, strict=True)]
    return together(title("mm", ""), get("mm"), [self, mat2], calls)


@listed("_foreach_max(Tensor[] self) -> Tensor[]")
def largest(self: Any) -> Any:
    """The largest element of each tensor."""
    check_filled(self)
    if not all(tensor.numel() for tensor in self):
        raise RuntimeError(
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is "
            "undefined."
        )
    return together(title("max", ""), get("max"), [self], [((tensor,), {}) for tensor in self])


@listed("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]")
def norms(self: Any, ord: Any = 2, dtype: Any = None) -> Any:
    """The norm of each tensor."""
    check_filled(self)
    if isinstance(ord, (bool, complex)):
        raise RuntimeError("foreach_tensor_norm_slow expects ord to be integer or float")
    if ord in (float("inf"), float("-inf")) and not all(tensor.numel() for tensor in self):
        raise RuntimeError(
            "_foreach_norm cannot compute the infinity norm on an empty tensor because the "
            "operation does not have an identity"
        )
    calls: Calls = [((tensor, ord), {"dtype": dtype}) for tensor in self]
    return together(title("norm", "Scalar"), get("linalg.vector_norm"), [self, ord], calls)


@listed("_foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]")
def sums_of_powers(self: Any, ord: Any = 2, dtype: Any = None) -> Any:
    """The sum of the powers of the absolute values of each tensor: its norm before the root."""
    check_filled(self)
    if isinstance(ord, complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    power, total, size = get("pow"), get("sum"), get("abs")
    unlearning = [tensor.detach() for tensor in self]
    if dtype is not None and not dtype.is_complex:  # of complex numbers, the absolute values
        unlearning = [size(t) if t.is_complex() else t for t in unlearning]
    given = [tensor if dtype is None else tensor.to(dtype) for tensor in unlearning]
    for tensor in given:
        if not (tensor.is_floating_point() or tensor.is_complex()):
            raise NotImplementedError("\"powsum_cpu\" not implemented for 'Long'")
    sums = tuple([total(power(size(tensor), ord)) for tensor in given])
    return recorded(sums, self, "_foreach_powsum")


@listed("_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]")
def copies(self: Any, *, memory_format: Any = None) -> Any:
    """A copy of each tensor."""
    check_filled(self)
    calls: Calls = [((tensor,), {"memory_format": memory_format}) for tensor in self]
    return together(title("clone", ""), get("clone"), [self], calls)


@listed("_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> Tensor[]")
def copy_to_each(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Write each tensor of a second list to its partner."""
    check_alike(self, src)
    for target, source in zip(self, src, strict=True):
        target.copy_(source, non_blocking)
    return self


@listed("_foreach_zero_(Tensor(a!)[] self) -> Tensor[]")
def zero_each(self: Any) -> Any:
    """Write zeros to each tensor."""
    check_filled(self)
    for tensor in self:
        tensor.zero_()
    return self
