"""The kernel language: what each statement, expression and word of docs/kernels.md does."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
import textwrap
import threading
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from flambeau._compiler import language
from flambeau._compiler import native as compiler
from flambeau._compiler.emitter import CompileError
from flambeau._compiler.language import f32, f64, i8, i32, i64, u8, u32
from flambeau._compiler.native import Native, from_source, native
from flambeau._runtime import launch
from flambeau._runtime.launch import kernel

Array = np.ndarray


def make(source: str, **scope: Any) -> Native:
    """A kernel from text, with more names that it may use."""
    text = textwrap.dedent(source).strip() + "\n"
    name = text.split("(")[0].removeprefix("def ")
    return from_source(name, text, {**vars(language), **scope})


def integers(body: str, *numbers: int, T: Any = i64, type: Any = np.int64, count: int = 1) -> list:
    """What `body` writes to `out`, given numbers a, b, c of type T."""
    named = "abc"[: len(numbers)]
    head = f"def f(out: pointer(T), {', '.join(f'{n}: T' for n in named)}, T: static):\n"
    out = np.zeros(count, type)
    kernel(make(head + textwrap.indent(textwrap.dedent(body), "    ")), T=T)(out, *numbers)
    return out.tolist()


def fails(source: str, message: str, **scope: Any) -> None:
    with pytest.raises(CompileError, match=message):
        kernel(make(source, **scope))


# ---- numbers


@pytest.mark.parametrize(
    ("expression", "a", "b", "wanted"),
    [
        ("a + b", 7, -2, 5), ("a - b", 7, -2, 9), ("a * b", 7, -2, -14),
        ("a // b", 7, -2, -3), ("a % b", 7, -2, 1), ("a // b", -7, 2, -3), ("a % b", -7, 2, -1),
        ("a << b", 5, 3, 40), ("a >> b", -16, 2, -4), ("a & b", 12, 10, 8), ("a | b", 12, 10, 14),
        ("a ^ b", 12, 10, 6), ("-a", 5, 0, -5), ("~a", 5, 0, -6), ("+a", 5, 0, 5),
        ("i64(a < b)", 1, 2, 1), ("i64(a >= b)", 1, 2, 0), ("i64(0 < a < b)", 1, 2, 1),
        ("i64(0 < a < b)", 3, 2, 0), ("i64(a == b)", 2, 2, 1), ("i64(a != b)", 2, 2, 0),
        ("i64(a > 0 and b > 0)", 1, 0, 0), ("i64(a > 0 or b > 0)", 1, 0, 1),
        ("i64(not a > b)", 1, 2, 1),
        ("a if a > b else b", 3, 9, 9), ("select(a > b, a, b)", 3, 9, 9), ("absolute(a)", -4, 0, 4),
        ("maximum(a, b)", -4, 3, 3), ("minimum(a, b)", -4, 3, -4), ("popcount(a)", 255, 0, 8),
        ("count_trailing_zeros(a)", 40, 0, 3), ("count_leading_zeros(a)", 1, 0, 63),
        ("2 ** 5 + 7 // 2 - a", 1, 0, 34),
    ],
)  # fmt: skip
def test_integers(expression: str, a: int, b: int, wanted: int) -> None:
    assert integers(f"out[0] = {expression}", a, b) == [wanted]


def test_integers_wrap_round() -> None:
    assert integers("out[0] = a + b", 127, 1, T=i8, type=np.int8) == [-128]
    assert integers("out[0] = a * b", 200, 2, T=u8, type=np.uint8) == [144]
    assert integers("out[0] = i64(i8(a))", 300) == [44]


def test_unsigned_numbers() -> None:
    top = (1 << 32) - 1
    assert integers("out[0] = a >> b", top, 4, T=u32, type=np.uint32) == [top >> 4]
    assert integers("out[0] = a // b", top, 10, T=u32, type=np.uint32) == [top // 10]
    assert integers("out[0] = u32(a > b)", top, 1, T=u32, type=np.uint32) == [1]
    assert integers("out[0] = i64(u8(a)) + i64(i8(a))", 255) == [254]


@pytest.mark.parametrize(
    ("expression", "a", "b", "wanted"),
    [
        ("a / b", 1.0, 3.0, np.float32(1) / np.float32(3)), ("a % b", -7.5, 2.0, -1.5),
        ("fma(a, b, 1)", 3.0, 4.0, 13.0), ("sqrt(a)", 2.25, 0.0, 1.5),
        ("floor(a)", -1.5, 0.0, -2.0),
        ("ceil(a)", -1.5, 0.0, -1.0), ("trunc(a)", -1.5, 0.0, -1.0), ("rint(a)", 2.5, 0.0, 2.0),
        ("copysign(a, b)", 2.0, -0.0, -2.0), ("maximum(a, b)", 1.0, np.nan, np.nan),
        ("minimum(a, b)", np.nan, 1.0, np.nan), ("larger(a, b)", np.nan, 1.0, 1.0),
        ("smaller(a, b)", 2.0, 1.0, 1.0), ("-a", 0.0, 0.0, -0.0), ("f32(i32(a))", -2.75, 0.0, -2.0),
        ("f32(is_nan(a))", np.nan, 0.0, 1.0), ("f32(f16(a))", 1.0004, 0.0, 1.0),
        ("f32(bf16(a))", 1.00390625, 0.0, 1.0), ("f32(bf16(a))", 1.01171875, 0.0, 1.015625),
        ("f32(cast(i32, a))", 1.0, 0.0, float(0x3F800000)), ("a + 1", 0.5, 0.0, 1.5),
    ],
)  # fmt: skip
def test_floats(expression: str, a: float, b: float, wanted: float) -> None:
    out = np.zeros(1, np.float32)
    kernel(make(f"def f(out: pointer(f32), a: f32, b: f32):\n    out[0] = {expression}"))(out, a, b)
    assert np.array_equal(out, np.float32([wanted]), equal_nan=True)
    assert np.signbit(out[0]) == np.signbit(np.float32(wanted))


def test_a_bool_is_a_byte_in_memory() -> None:
    out = np.zeros(3, bool)
    source = """
    def f(out: pointer(b8), x: f32, yes: boolean):
        out[0] = b8(x > 1)
        out[2] = b8(yes)
    """
    kernel(make(source))(out, 2.0, True)
    assert out.tolist() == [True, False, True]


# ---- statements


def test_loops() -> None:
    body = """
    total = 0
    for i in range(a):
        if i == 3:
            continue
        if i == 8:
            break
        total += i
    for i in range(10, 4, -2):
        total += 100 * i
    while total % 7 != 0:
        total += 1
    out[0] = total
    """
    wanted = sum(i for i in range(8) if i != 3) + 100 * (10 + 8 + 6)
    wanted += -wanted % 7
    assert integers(body, 100) == [wanted]
    assert integers("out[0] = 5\nfor i in range(3, a):\n    out[0] = i", 3) == [5]


def test_a_loop_may_change_its_counter_without_changing_the_rounds() -> None:
    body = "rounds = 0\nfor i in range(a):\n    i += 5\n    rounds += i\nout[0] = rounds"
    assert integers(body, 4) == [5 + 6 + 7 + 8]


def test_branches() -> None:
    body = """
    if a > 10:
        out[0] = 1
    elif a > 5:
        out[0] = 2
    else:
        out[0] = 3
    """
    assert [integers(body, a)[0] for a in (11, 6, 5)] == [1, 2, 3]


def test_an_if_on_a_constant_keeps_one_branch() -> None:
    body = """
    FLOATS = T.is_float
    if FLOATS:
        out[0] = no_such_name
    else:
        out[0] = no_such_name if FLOATS else 4
    """
    assert integers(body, 0) == [4]


def test_unroll_and_registers() -> None:
    body = """
    sums = registers(T, 3)
    for i in range(a):
        for k in unroll(3):
            sums[k] += i * k
    for k in unroll((2, 0, 1)):
        out[k] = sums[k]
    for k, weight in unroll(((0, 10), (1, 20))):
        out[k] += weight
    """
    assert integers(body, 5, count=3) == [10, 30, 20]


def test_stack() -> None:
    body = """
    memory = stack(T, 8)
    for i in range(8):
        memory[i] = i * i
    out[0] = memory[a] + (memory + 2)[1]
    """
    assert integers(body, 5) == [34]


def test_tuples_and_returned_values() -> None:
    @native
    def divided(a, b):
        return a // b, a % b

    @native
    def larger_half(a):
        if a > 10:
            return a - 10
        return a

    scope = {"divided": divided, "larger_half": larger_half}
    source = """
    def f(out: pointer(i64), a: i64, b: i64):
        quotient, rest = divided(a, b)
        quotient, rest = rest, quotient
        out[0] = quotient
        out[1] = rest
        out[2] = larger_half(a)
        out[3] = larger_half(b)
    """
    out = np.zeros(4, np.int64)
    kernel(make(source, **scope))(out, 17, 5)
    assert out.tolist() == [2, 3, 7, 5]


def test_annotated_names_and_constants() -> None:
    body = (
        "half: f32 = 1\nhalf = half / 2\nLIMIT = 3\nout[0] = T(half * 8) + LIMIT\nassert LIMIT > 2"
    )
    assert integers(body, 0) == [7]


def test_kernels_as_constants() -> None:
    @native
    def twice(x):
        return x + x

    @native
    def square(x):
        return x * x

    chosen = make("def chosen(out: pointer(i64), a: i64, F: static):\n    out[0] = F(a)")
    out = np.zeros(1, np.int64)
    for function, wanted in ((twice, 14), (square, 49)):
        kernel(chosen, F=function)(out, 7)
        assert out[0] == wanted


# ---- vectors and memory


def on_vectors(body: str, *arrays: Array, count: int = 8, type: Any = np.float32) -> Array:
    """What a body stores to `out`; x and y are the arrays."""
    head = "def f(out: pointer(T), x: pointer(S), y: pointer(S), T: static, S: static):\n"
    out = np.full(count, -1, type)
    x, y = arrays if len(arrays) == 2 else (arrays[0], arrays[0])
    names = {"float32": f32, "int32": i32, "int64": i64, "float64": f64}
    k = kernel(make(head + textwrap.indent(textwrap.dedent(body).strip(), "    ")),
               T=names[out.dtype.name], S=names[x.dtype.name])  # fmt: skip
    k(out, x, y)
    return out


X = np.float32([3, -1, 4, 1, -5, 9, 2, -6])
Y = np.float32([2, 7, 1, 8, 2, 8, 1, 8])


def test_lane_by_lane() -> None:
    assert np.array_equal(on_vectors("store(out, load(x, 8) * 2 + load(y, 8))", X, Y), X * 2 + Y)
    got = on_vectors("v = load(x, 8)\nstore(out, select(v > 0, v, load(y, 8)))", X, Y)
    assert np.array_equal(got, np.where(X > 0, X, Y))
    assert np.array_equal(on_vectors("store(out, splat(x[2], 8))", X), np.full(8, 4))
    got = on_vectors("store(out, f32(lanes(i32, 8)) + vector(f32, 8)(1))", X)
    assert np.array_equal(got, np.arange(8) + 1)


def test_masks() -> None:
    mask = "m = lanes(i64, 8) < 3\n"
    got = on_vectors(mask + "store(out, load(x, 8, m))", X)
    assert np.array_equal(got, [3, -1, 4, 0, 0, 0, 0, 0])
    got = on_vectors(mask + "store(out, load(x, 8), mask=m)", X)
    assert np.array_equal(got, [3, -1, 4, -1, -1, -1, -1, -1])
    got = on_vectors("out[0] = f32(mask_bits(load(x, 8) > 0))", X)
    assert got[0] == sum(1 << k for k in range(8) if X[k] > 0)
    got = on_vectors("out[0] = 1 if any_lane(load(x, 8) > 8) else f32(0)", X)
    assert got[0] == 1


def test_gather_shuffle_insert() -> None:
    order = np.int32([7, 0, 3, 3, 1, 2, 6, 5])
    source = """
    def f(out: pointer(f32), x: pointer(f32), order: pointer(i32)):
        store(out, gather(x, load(order, 8)))
    """
    out = np.zeros(8, np.float32)
    kernel(make(source))(out, X, order)
    assert np.array_equal(out, X[order])
    got = on_vectors("store(out, shuffle(load(x, 4), load(y, 4), (0, 4, 1, 5)))", X, Y, count=4)
    assert np.array_equal(got, [3, 2, -1, 7])
    got = on_vectors("store(out, shuffle(load(x, 4), None, (3, 2, 1, 0)))", X, count=4)
    assert np.array_equal(got, X[3::-1])
    got = on_vectors("v = insert(load(x, 8), 2, f32(50))\nout[0] = v[2] + v[0]", X)
    assert got[0] == 53


@pytest.mark.parametrize(
    ("word", "wanted"), [("add", X.sum()), ("mul", X.prod()), ("max", 9), ("min", -6)]
)
def test_reductions(word: str, wanted: float) -> None:
    assert on_vectors(f"out[0] = reduce_{word}(load(x, 8))", X)[0] == wanted
    whole = X.astype(np.int32)
    assert on_vectors(f"out[0] = reduce_{word}(load(x, 8))", whole, type=np.int32)[0] == wanted


def test_reductions_of_bits_and_nan() -> None:
    whole = np.int32([12, 10, 14, 8])
    assert on_vectors("out[0] = reduce_and(load(x, 4))", whole, type=np.int32)[0] == 8
    assert on_vectors("out[0] = reduce_or(load(x, 4))", whole, type=np.int32)[0] == 14
    assert np.isnan(on_vectors("out[0] = reduce_max(load(x, 4))", np.float32([1, np.nan, 3, 2]))[0])


def test_memory_words() -> None:
    got = on_vectors("copy_memory(out, x + 1, 3)\nzero_memory(out + 6, 2)\nprefetch(x)", X)
    assert np.array_equal(got, [-1, 4, 1, -1, -1, -1, 0, 0])
    got = on_vectors("out[0] = table(f32, (5, 6, 7))[i64(x[3])]\nout[1] = f32(x + 3 - x)", X)
    assert got[:2].tolist() == [6, 3]
    got = on_vectors("out[0] = cast(pointer(f32), cast(pointer(i8), x) + 8)[0]", X)
    assert got[0] == 4
    aligned = np.zeros(24, np.float32)
    start = -(aligned.ctypes.data // 4) % 8
    source = """
    def f(out: pointer(f32), x: pointer(f32)):
        store(out, load(x, 8), stream=True)
    """
    kernel(make(source))(aligned[start : start + 8], X)
    assert np.array_equal(aligned[start : start + 8], X)


def test_half_types_in_memory() -> None:
    import ml_dtypes

    values = np.float32([1.5, -2.25, 3.140625, 1e-3, 65504, np.inf, -np.inf, np.nan])
    source = "def f(out: pointer(T), x: pointer(f32), T: static):\n    store(out, T(load(x, 8)))"
    for name, type in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        out = np.zeros(8, type)
        kernel(make(source), T=getattr(language, name))(out, values)
        wanted = values.astype(type)
        assert np.array_equal(out.astype(np.float32), wanted.astype(np.float32), equal_nan=True)


def test_atomics() -> None:
    source = """
    def f(out: pointer(i64), task: i64, tasks: i64):
        for i in range(1000):
            atomic_add(out, 1)
        if compare_exchange(out + 1, 0, task + 10):
            atomic_store(out + 2, atomic_load(out + 1))
        if task == 0:
            out[3] = atomic_exchange(out + 4, 6)
    """
    out = np.zeros(5, np.int64)
    kernel(make(source)).parallel(8, out)
    assert out[0] == 8000
    assert 10 <= out[1] < 18
    assert out[2] == out[1]
    assert out[3:].tolist() == [0, 6]


def test_tasks_split_the_work() -> None:
    source = """
    def f(out: pointer(i64), n: i64, task: i64, tasks: i64):
        for i in range(n * task // tasks, n * (task + 1) // tasks):
            out[i] = task
    """
    k = kernel(make(source))
    out = np.full(10, -1, np.int64)
    k.parallel(3, out, 10)
    assert out.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    k(out, 10)
    assert out.tolist() == [0] * 10


# ---- errors


def test_errors_name_the_kernel_and_the_line() -> None:
    fails("def f(out: pointer(i64)):\n    out[0] = nothing", "f.*no name 'nothing'")
    fails("def f(out: pointer(f32)):\n\n    x = 1.5\n    x = 2.5\n    out[0] = x",
          "f, line 3: x changes: say its type, as in f32")  # fmt: skip
    fails("def f(out: pointer(f32), n: i64):\n    out[0] = n", "f, line 2: i64 does not fit f32")
    fails("def f(out: pointer(f32), n: i64):\n    out[0] = out[0] + n",
          "f, line 2: f32 beside i64: convert one of them")  # fmt: skip
    fails("def f(out: pointer(i64), n: i64):\n    out[0] = n + 0.5", "f, line 2: 0.5 beside i64")
    fails("def f(out: pointer(i64), n: i64):\n    r = registers(i64, 2)\n    out[0] = r[n]",
          "f, line 3: registers are indexed by constants")  # fmt: skip
    fails(
        "def f(out: pointer(f32)):\n    out[0] = out[0] // out[1]", "f, line 2: // is for integers"
    )
    fails("def f(out: pointer(i64)):\n    with out:\n        pass", "f, line 2: no With in kernels")
    fails("def f(out: pointer(i64), n: i64):\n    out[0] = len([n for k in out])", "no ListComp")
    fails("def f(out: pointer(i64), n):\n    out[0] = n", "what type has 'n'")
    fails("def f(out: pointer(i64), n: i64):\n    assert T > 3\n    out[0] = n",
          "f, line 2: this kernel needs T > 3", T=2)  # fmt: skip
    fails("def f(out: pointer(i64), n: i64):\n    out[0] = g(n, n)", "too many arguments",
          g=make("def g(n):\n    return n"))  # fmt: skip
    fails("def f(out: pointer(i64), n: i64):\n    out[0] = g()", "no argument for 'n'",
          g=make("def g(n):\n    return n"))  # fmt: skip
    fails("def f(out: pointer(i64), n: i64):\n    out[0] = print(n)", "is not a kernel")


def test_words_and_kernels_are_not_called_from_python() -> None:
    with pytest.raises(TypeError, match="sqrt is a word of the kernel language"):
        language.sqrt(2.0)
    with pytest.raises(TypeError, match="f is a kernel"):
        make("def f(x):\n    return x")(1)


# ---- the checked form


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "CHECKED", True)
    monkeypatch.setattr(launch, "WATCHED", True)
    monkeypatch.setattr(launch, "KERNELS", {})


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("out[n] = x[0]", 2), ("out[0] = x[n]", 2), ("out[0] = x[-1]", 2),
        ("store(out, load(x, 8))\n    store(out + 1, load(x, 8))", 3),
        ("store(out, load(x + 1, 8))", 2),
        ("m = lanes(i64, 8) < 3\n    store(out + 6, load(x, 8), mask=m)", 3),
        ("m = lanes(i64, 8) < 3\n    store(out, load(x + 6, 8, m))", 3),
        ("store(out, gather(x, lanes(i64, 8) * 2))", 2),
    ],
)  # fmt: skip
def test_access_outside_is_found(checked: None, body: str, line: int) -> None:
    k = kernel(make(f"def f(out: pointer(f32), x: pointer(f32), n: i64):\n    {body}"))
    memory = np.arange(32, dtype=np.float32)
    before = memory.copy()
    with pytest.raises(IndexError, match=rf"kernel f .*access outside of its array, line {line}"):
        k(memory[8:16], X, 8)
    assert np.array_equal(memory[:8], before[:8])
    assert np.array_equal(memory[16:], before[16:])


def test_access_inside_is_let_pass(checked: None) -> None:
    source = """
    def f(out: pointer(f32), x: pointer(f32), n: i64):
        m = lanes(i64, 8) < 2
        store(out + 6, load(x + 6, 8, m), mask=m)
        own = stack(f32, 2)
        own[1] = x[n - 1]
        pointer_to = x
        pointer_to = pointer_to + 3
        out[0] = own[1] + pointer_to[4]
    """
    out = np.zeros(8, np.float32)
    kernel(make(source))(out, X, 8)
    assert out.tolist() == [-12, 0, 0, 0, 0, 0, 2, -6]


def test_the_variable_that_switches_checks_on() -> None:
    program = """
    import numpy as np
    from flambeau._compiler.language import *
    from flambeau._compiler.native import from_source
    from flambeau._runtime.launch import kernel
    k = kernel(from_source("f", "def f(x: pointer(f32), n: i64):\\n    x[n] = 1\\n", globals()))
    try:
        k(np.zeros(4, np.float32), 4)
    except IndexError as error:
        print("caught", error)
    """
    environment = {**os.environ, "FLAMBEAU_DEBUG": "bounds", "FLAMBEAU_CACHE_DIR": ""}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=environment,
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.startswith("caught kernel f")


# ---- what machine code is kept for


def test_a_digest_follows_all_that_a_kernel_uses() -> None:
    caller = "def f(x: pointer(i64)):\n    x[0] = g(x[0]) * FACTOR"

    def digest(helper: str, factor: Any, **options: Any) -> str:
        scope = {**vars(language), "g": make(helper), "FACTOR": factor}
        return from_source("f", caller, scope, **options).digest()

    plus_one, plus_two = (f"def g(n):\n    return n + {k}" for k in (1, 2))
    first = digest(plus_one, 3)
    assert digest(plus_one, 3) == first
    others = [digest(plus_two, 3), digest(plus_one, 4), digest(plus_one, (3, 4)),
              digest(plus_one, 3, apart=True)]  # fmt: skip
    assert len({first, *others}) == 5


def test_a_digest_follows_what_stands_below_the_kernel() -> None:
    """Then it is not there yet when the kernel is made."""

    def digest(helper: str) -> str:
        kernel = from_source("f", "def f(x: pointer(i64)):\n    x[0] = below(x[0])\n", {})
        kernel.function.__globals__["below"] = from_source("below", helper, {})
        return kernel.digest()

    plus_one, plus_two = (f"def below(v):\n    return v + {k}\n" for k in (1, 2))
    assert digest(plus_one) == digest(plus_one) != digest(plus_two)


def test_a_digest_follows_what_functions_that_run_while_compiling_use() -> None:
    """Such a function is no kernel: it answers a constant of the kernel's text."""

    def digest(factor: int) -> str:
        scope: dict[str, Any] = {"__name__": f"lanes_{factor}"}
        for name, text in (("inner", f"lambda: [{factor} for _ in range(2)]"),
                           ("lanes", "lambda: (lambda: inner())()")):  # fmt: skip
            file = f"<{name} {factor}>"
            source = f"{name} = {text}\n"
            linecache.cache[file] = (len(source), None, [source], file)
            exec(compile(source, file, "exec"), scope)
        kernel = "def f(x: pointer(i64)):\n    x[0] = lanes()[0]\n"
        return from_source("f", kernel, {**vars(language), "lanes": scope["lanes"]}).digest()

    assert digest(3) == digest(3) != digest(4)


def test_options_do_not_change_results() -> None:
    source = "def f(out: pointer(i64), n: i64):\n    for i in range(n):\n        out[i] = g(i)"
    for options in ({"vectorize": True}, {"apart": True}, {}):
        helper = from_source("g", "def g(n):\n    return n * n\n", vars(language), outline=True)
        scope = {**vars(language), "g": helper}
        out = np.zeros(37, np.int64)
        kernel(from_source("f", source, scope, **options))(out, 37)
        assert np.array_equal(out, np.arange(37) ** 2)


class Interrupted:
    """A constant of a kernel at whose first question for its text a signal's handler raises."""

    def __init__(self, during: Any = None) -> None:
        self.during = during
        self.asked = 0

    def __repr__(self) -> str:
        self.asked += 1
        if self.asked == 1:
            self.during()
        return "2"


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_digest_that_was_interrupted_is_made_anew() -> None:
    """What was kept for it would be the key of every kernel that was interrupted."""
    kernels = [make(f"def f(x: pointer(i64)):\n    x[0] = x[0] + {k} * FACTOR",
                    FACTOR=Interrupted(interrupt)) for k in (1, 2)]  # fmt: skip
    for found in kernels:
        with pytest.raises(KeyboardInterrupt):
            found.digest()
    whole = [make(found.source, FACTOR=2).digest() for found in kernels]
    assert [found.digest() for found in kernels] == whole
    assert whole[0] != whole[1]


def test_a_digest_that_another_thread_makes_is_none_yet() -> None:
    found: list[str] = []

    def ask() -> None:
        thread = threading.Thread(target=lambda: found.append(kernel.digest()))
        thread.start()
        thread.join()

    kernel = make("def f(x: pointer(i64)):\n    x[0] = x[0] * FACTOR", FACTOR=Interrupted(ask))
    assert [kernel.digest()] == found


def test_variables_are_known_as_soon_as_the_tree_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel whose parsing was interrupted took what is assigned twice for constants."""
    kernel = make("def f(x: pointer(i64)):\n    n = x[0]\n    n += 1\n    x[0] = n")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(compiler, "_assigned_often", lambda tree: interrupt())
        _ = kernel.tree
    assert kernel.assigned_often == {"n"}
