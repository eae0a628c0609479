"""Programs that TorchScript refuses: names, syntax, types of variables and results."""

# ruff: noqa

import math
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor


def undefined_name(x):
    y = undefined(x) + 3
    return y


def star_arguments(x, *args):
    return x


def keyword_arguments(x, **kwargs):
    return x


def try_block(x):
    try:
        return x
    except:
        return x


def undefined_in_a_branch(x):
    if x.sum() > 0:
        y = 3
    return y


def types_of_branches(x):
    if x.sum() > 0:
        y = 3
        z = 4
    else:
        z = "a"
        y = "s"
    return y


def type_changes_in_a_loop(x):
    x = 4
    for i in range(3):
        if i > 2:
            x = "3"
    return x


def unknown_method(x):
    return x.foo(2)


def unknown_attribute(x: List[int]):
    return x.foo


def _too_many_arguments(x):
    return torch.relu(x, 3)


def error_in_a_callee(x):
    return _too_many_arguments(x)


def recursion(x):
    return recursion(x)


def mutable_default(x, y=[1]):
    return x


def int_is_not_subscriptable(x: int):
    return x[0]


def yields(x):
    yield x


def global_statement(x):
    global show
    return x


def too_few_values(x):
    a, b, c = x.size(0), 2
    return a


def too_many_values(x):
    a, b = 1, 2, 3
    return a


def tensor_unpacked(x):
    a, b = x
    return a


def list_of_unknown_length(x: List[int]):
    a, *b = x
    return a


def a_lambda(x):
    return lambda y: y


def inner_function(x):
    def g(y): return y
    return x


class A:
    pass


def print_as_value(x):
    return print


def class_as_value(x):
    return A


def wrong_result(x) -> str:
    return x


def undefined_later(x):
    while x: 
        x += 1
    return y


def unknown_keyword(x):
    return x.size(foo=3)


def unknown_function(x): 
    return torch.foo(x)


def optional_operand(x: Optional[Tensor]):
    return x + 1


def refined_too_late(x: Optional[int]):
    if x is not None:
        pass
    return x + 1


def no_result_on_a_path(x: int) -> int:
    if x > 1:
        return 2


def results_differ(x: int):
    if x > 1:
        return 2
    return "s"


def for_else(x: int):
    for i in range(x):
        pass
    else:
        pass
    return x


def augmented_floor_division(x: int):
    x //= 2
    return x


def unknown_iterable(x):
    for i in x.foo():
        pass
    return x


def int_is_not_iterable(x: int):
    for i in x:
        pass
    return x


def unknown_type(x: 'Foo'):
    return x


def list_without_element(x: List):
    return x


def list_as_key(x: Dict[List[int], int]):
    return x


def keys_differ(x):
    return {1: 2, "a": 3}


def an_import(x):
    import math
    return x


def tuple_index_out_of_range(x: Tuple[int, int], i: int):
    return x[2]


def tuple_index_unknown(x: Tuple[int, str], i: int):
    return x[i]


def attribute_of_int(x: int):
    x.y = 3
    return x


def raise_a_text(x: int):
    raise "a"


def with_a_tensor(x):
    with x:
        y = x
    return x


def comprehension_if(x):
    return [i for i in x if i > 3]


def two_generators(x):
    return [i for i in x for j in x]


def conversion_in_text(x):
    return f"{x!r}"


def format_in_text(x):
    return f"{x:3}"


def keyword_only_default(x, *, y=3):
    return x
