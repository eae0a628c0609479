"""Programs that TorchScript refuses: literals, indices, annotations, calls."""

# ruff: noqa

import math
from typing import Any, List, Optional, Tuple, Union

import torch
from torch import Tensor


def int_and_text(x: int):
    return x + "a"


def text_for_tensor(x: str):
    return torch.relu(x)


def overloads(x):
    return torch.cat(x, x, x)


def annotation_without_value(x: int):
    y: int
    return x


def annotated_otherwise(x: int):
    y: str = 3
    return x


def elements_of_another_type(x: int):
    y: List[int] = [1.0]
    return y


def empty_list_of_tensors(x: int):
    y = []
    y.append(3)
    return y


def index_by_dict(x):
    return x[{}]


def index_by_text(x):
    return x["a"]


def tensor_behind_ellipsis(x):
    return x[..., x]


def two_ellipses(x):
    return x[..., 0, ...]


def getattr_unknown(x: int):
    return getattr(x, "foo")


def isinstance_of_one(x: int):
    return isinstance(x)


def range_as_value(x: int):
    return range(x)


def range_of_text(x: int):
    return range("a")


def range_of_four(x: int):
    for i in range(1, 2, 3, 4):
        pass
    return x


def enumerate_nothing(x: int):
    for i in enumerate():
        pass
    return x


def ternary_types(x: int):
    x = y = 3
    z = 3 if x > 2 else "a"
    return z


def tolist_without_type(x):
    return x.tolist()


def module_as_value(x):
    return math


def unknown_in_module(x):
    return math.foo(x)


def unknown_method_of_text(x: str):
    return x.foo()


def async_function(x):
    async def f(): pass
    return x


def walrus(x):
    return (y := x)


def a_set(x):
    return {1, 2}


def slice_assigned_in_list(x: List[int]):
    x[0:1] = [2]
    return x


def slice_deleted(x: List[int]):
    del x[0:1]
    return x


def tuple_assigned(x: Tuple[int, int]):
    x[0] = 1
    return x


def default_of_another_type(x, y: int = "a"):
    return x


def default_without_annotation(x, y=3):
    return y + 1


def attribute_of_dtype(x):
    return torch.float32.foo


def print_with_keyword(x):
    print(x, end="")


def int_called(x: int):
    return x(3)


def annotate_wrong(x):
    return torch.jit.annotate(int, "a")


def any_operand(x, y: Any):
    return y + 1


def union_operand(x: Union[int, str]):
    return x + 1


def type_comment_too_short(x, y):
    # type: (int) -> int
    return x


def defined_in_while(x: int):
    while x > 0:
        x = x - 1
        y = 3
    return y


def defined_in_for(x: int):
    for i in range(3):
        y = i
    return y


def optional_after_loop(x: Optional[int]):
    for i in range(3):
        if x is not None:
            x = x + 1
    return x + 1


def sum_of_texts(x, l: List[str]):
    return sum(l)


def number_too_big(x):
    return 99999999999999999999


def bytes_literal(x):
    return b"abc"


def dict_expansion(x):
    return {**x}


def tensor_expanded(x):
    return torch.add(*x)


def keyword_expansion(x):
    return torch.add(**x)


def python_builtin(x):
    return open("f")


def reserved_name(x):
    return __jitfoo


def eval_called(x):
    nonlocal_ = 3
    return eval("3")


def module_type(x: torch.nn.Module):
    return x


def unknown_exception(x: int):
    raise Foo("a")


def int_unpacked(x: int):
    a, b = x
    return a


def real_of_int(x: int):
    return x.real
