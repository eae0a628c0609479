"""Matrix products through cuBLASLt: plans that are made once and run often.

A plan holds what the library wants to know of a product: descriptors, layouts, and the fastest of
the algorithms that its heuristic proposes. `run` then takes addresses only.
"""

from __future__ import annotations

import threading
from ctypes import addressof, byref, c_int, c_void_p, sizeof
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.libraries import cublaslt_numbers as numbers
from flambeau._runtime.cuda.libraries.cublaslt_numbers import Found
from flambeau._runtime.cuda.libraries.foreign import Foreign, LibraryError, opened
from flambeau._runtime.cuda.libraries.matrices import Product, Stored, work
from flambeau._runtime.cuda.libraries.product_call import calling
from flambeau._runtime.cuda.libraries.timing import fastest
from flambeau._runtime.cuda.libraries.workspaces import capturing, workspace
from flambeau._runtime.cuda.memory import Block, Current

WORKSPACE = 32 << 20
CANDIDATES = 8
CALLS = 256
"""Calls that a plan keeps, one for each stream and each pair of addresses of bias and aux."""
WRITING_BESIDE = (numbers.GELU_AUX, numbers.GELU_AUX_BIAS, numbers.BGRADB)
"""Epilogues that write besides the result."""
MEASURED = 1 << 30
"""Multiply-adds from which on candidates are measured; the launch outweighs smaller products."""


class Unsupported(Exception):
    """The library has no algorithm for a product of this kind."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is done with the factors, besides where they lie. `dtype`: NumPy's name of their type.

    `alignment`: bytes that all addresses are multiples of, 256 at most. `conjugated`: of left and
    right, which are transposed then. `measured`: the fastest algorithm, not the one proposed first.
    `result`: the type of the result where it is not the usual one.
    """

    dtype: str
    epilogue: int = numbers.DEFAULT
    tf32: bool = False
    alignment: int = 256
    conjugated: tuple[bool, bool] = (False, False)
    wide_reductions: bool = False
    measured: bool = True
    result: str = ""


class Lt:
    """The library on a device."""

    def __init__(self, foreign: Foreign) -> None:
        self.foreign = foreign
        self.handle = self._made("cublasLtCreate")
        self.matmul = foreign.functions["cublasLtMatmul"]

    def _made(self, name: str, *arguments: Any) -> int:
        held = c_void_p()
        self.foreign.call(name, byref(held), *arguments)
        return int(held.value or 0)

    def _put(self, what: str, target: int, attributes: Any, values: dict[str, int]) -> None:
        for name, value in values.items():
            number, kind = attributes[name]
            held = kind(value)
            self.foreign.call(f"cublasLt{what}SetAttribute", target, number, byref(held),
                              sizeof(held))  # fmt: skip

    def description(self, kind: Kind, values: dict[str, int]) -> int:
        """How factors are multiplied."""
        compute, scale = numbers.COMPUTE[kind.dtype]
        if kind.tf32 and compute == numbers.COMPUTE_32F:
            compute = numbers.COMPUTE_TF32
        made = self._made("cublasLtMatmulDescCreate", compute, numbers.TYPES[scale])
        self._put("MatmulDesc", made, numbers.DESCRIPTION, values)
        return made

    def layout(self, dtype: str, rows: int, columns: int, matrix: Stored, batch: int) -> int:
        """Where a matrix lies. `rows` and `columns`: as the library multiplies it."""
        stored = (columns, rows) if matrix.transposed else (rows, columns)
        made = self._made("cublasLtMatrixLayoutCreate", numbers.TYPES[dtype], *stored, matrix.ld)
        if batch > 1:
            values = {"batch": batch, "step": matrix.step}
            self._put("MatrixLayout", made, numbers.LAYOUT, values)
        return made

    def algorithms(self, description: int, layouts: tuple[int, int, int, int], kind: Kind,
                   alignment: int) -> list[Found]:  # fmt: skip
        """What the heuristic proposes, best first. Raises Unsupported where that is nothing."""
        wish = self._made("cublasLtMatmulPreferenceCreate")
        values = {f"alignment_{name}": alignment for name in "abcd"}
        values["workspace"] = WORKSPACE
        if kind.wide_reductions:
            values["reductions"] = numbers.WIDE_REDUCTIONS
        self._put("MatmulPreference", wish, numbers.PREFERENCE, values)
        found, count = (Found * CANDIDATES)(), c_int()
        try:
            self.foreign.call("cublasLtMatmulAlgoGetHeuristic", self.handle, description, *layouts,
                              wish, CANDIDATES, found, byref(count))  # fmt: skip
        except LibraryError as error:
            if error.status in (numbers.NOT_SUPPORTED, numbers.INVALID_VALUE):
                raise Unsupported(str(error)) from None
            raise
        usable = [one for one in found[: count.value] if one.state == numbers.SUCCESS]
        if not usable:
            raise Unsupported("no algorithm is proposed")
        return usable


@cache
def library(device: int) -> Lt:
    """The library on a device, which is the current one.

    Raises:
        MissingLibrary: it is not installed.
    """
    from flambeau._runtime.cuda.libraries.stand_in.cublaslt import StandIn

    return Lt(opened("cuBLASLt", StandIn, numbers.SIGNATURES, numbers.WORDS))


def _operation(matrix: Stored, conjugated: bool) -> int:
    if not conjugated:
        return numbers.TRANSPOSED if matrix.transposed else numbers.AS_IT_IS
    if not matrix.transposed:
        raise Unsupported("a conjugated factor that is not transposed")
    return numbers.ADJOINT


@lru_cache(1024)
def scalar(dtype: str, value: complex) -> tuple[np.ndarray, int]:
    """A number in the type of alpha and beta, and its address."""
    held = np.array([value], numbers.COMPUTE[dtype][1])
    return held, held.ctypes.data


class Plan:
    """A product whose sizes, layouts and types are settled."""

    def __init__(self, product: Product, kind: Kind) -> None:
        self.product, self.kind = product, kind
        self.lt = library(Current.device)
        left, right, out = product.left, product.right, product.out
        self.result = kind.result or numbers.RESULTS.get(kind.dtype, kind.dtype)
        self.sizes = tuple(np.dtype(_numpy(name)).itemsize for name in (kind.dtype, self.result))
        self.values = {
            "transa": _operation(right, kind.conjugated[1]),
            "transb": _operation(left, kind.conjugated[0]),
            "epilogue": kind.epilogue,
        }
        if kind.epilogue in numbers.WITH_AUX:
            self.values["aux_ld"] = out.ld
        rows, columns, depth, batch = product.rows, product.columns, product.depth, product.batch
        self.layouts = (
            self.lt.layout(kind.dtype, columns, depth, right, batch),
            self.lt.layout(kind.dtype, depth, rows, left, batch),
            self.lt.layout(self.result, columns, rows, product.added or out, batch),
            self.lt.layout(self.result, columns, rows, out, batch),
        )
        self.takes_bias = kind.epilogue in numbers.WITH_BIAS
        self.takes_aux = kind.epilogue in numbers.WITH_AUX
        self.lock = threading.Lock()
        self.calls: dict[tuple[int, int, int], Any] = {}
        self.shared = self._described(*self._any_addresses())
        self.found = self.lt.algorithms(self.shared, self.layouts, kind, self._alignment())
        self.chosen = addressof(self.found[0])
        self.settled = len(self.found) == 1 or not kind.measured or work(product) < MEASURED
        self.alone = len(product.outer) == 1

    def _any_addresses(self) -> tuple[int, int]:
        """Addresses as those of bias and aux will be, for the heuristic to look at; 0 for what the
        epilogue does not have."""
        somewhere = workspace(WORKSPACE)
        return somewhere * self.takes_bias, somewhere * self.takes_aux

    def _described(self, bias: int, aux: int) -> int:
        """A description that holds these addresses."""
        given = {name: at for name, at in (("bias", bias), ("aux", aux)) if at}
        return self.lt.description(self.kind, {**self.values, **given})

    def _alignment(self) -> int:
        """What all addresses of all calls are multiples of."""
        bits = self.kind.alignment
        for left, right, out, added in self.product.outer:
            bits |= (left | right) * self.sizes[0] | (out | added) * self.sizes[1]
        return bits & -bits

    def run(self, left: int, right: int, out: int, added: int = 0, alpha: complex = 1,
            beta: complex = 0, bias: int = 0, aux: int = 0) -> None:  # fmt: skip
        """Write `alpha * left @ right + beta * added`, then the epilogue, to addresses; on the
        current stream."""
        bias, aux = bias * self.takes_bias, aux * self.takes_aux
        if not self.settled and not capturing():
            self._settle(left, right, out, added, alpha, beta, bias, aux)
        call = self.calls.get((bias, aux, Current.stream))
        if call is None:
            call = self._call(bias, aux)
        if call is not None:
            self._launch(call, left, right, out, added, alpha, beta)
            return
        with self.lock:
            self._launch(self._pointed(bias, aux), left, right, out, added, alpha, beta)

    def on(self, device: int) -> Any:
        """What does the same again: `again`, which is for the device that this is for."""
        return self.again

    def again(self, stream: int, left: Any, right: Any, out: Any, added: Any, bias: Any, aux: Any,
              alpha: complex, beta: complex) -> None:  # fmt: skip
        """The same on `stream`, the current one, for arrays or addresses; 0 for what there is not.

        What is not simply one call of the library takes the long way.
        """
        plain = self.alone and not (self.takes_bias or self.takes_aux)
        call = self.calls.get((0, 0, stream)) if plain else None
        if call is None or not self.settled:
            a, b, d, c, bias_at, aux_at = [
                value if value.__class__ is int else address(value)
                for value in (left, right, out, added, bias, aux)
            ]
            self.run(a, b, d, c, alpha, beta, bias_at, aux_at)
            return
        _, at_alpha = scalar(self.kind.dtype, alpha)
        _, at_beta = scalar(self.kind.dtype, beta)
        third = out if added.__class__ is int and not added else added
        status = call(at_alpha, right, left, at_beta, third, out, stream)
        if status:
            raise self.lt.foreign.error("cublasLtMatmul", status)

    def _call(self, bias: int, aux: int) -> Any:
        """The library's function for these addresses and the current stream, with a description of
        its own; None where there are enough of them."""
        if len(self.calls) >= CALLS:
            return None
        description = self._described(bias, aux) if bias or aux else self.shared
        call = self.calls[bias, aux, Current.stream] = self._made(description)
        return call

    def _made(self, description: int) -> Any:
        return calling(self.lt.matmul, self.lt.handle, description, *self.layouts, self.chosen,
                       workspace(WORKSPACE), WORKSPACE)  # fmt: skip

    def _pointed(self, bias: int, aux: int) -> Any:
        """The same with the description that all others share, which has to hold the addresses
        until the call is done."""
        given = {name: at for name, at in (("bias", bias), ("aux", aux)) if at}
        self.lt._put("MatmulDesc", self.shared, numbers.DESCRIPTION, given)
        return self._made(self.shared)

    def _launch(self, call: Any, left: int, right: int, out: int, added: int, alpha: complex,
                beta: complex) -> None:  # fmt: skip
        _, at_alpha = scalar(self.kind.dtype, alpha)
        _, at_beta = scalar(self.kind.dtype, beta)
        places = [(left, right, out, added or out)]
        if not self.alone:
            corners = self.product.outer
            places = [self._moved(corner, left, right, out, added) for corner in corners]
        for a, b, d, c in places:
            status = call(at_alpha, b, a, at_beta, c, d, Current.stream)
            if status:
                raise self.lt.foreign.error("cublasLtMatmul", status)

    def _moved(self, corner: tuple[int, ...], left: int, right: int, out: int,
               added: int) -> tuple[int, int, int, int]:  # fmt: skip
        size, wide = self.sizes
        to = out + corner[2] * wide
        return (left + corner[0] * size, right + corner[1] * size, to,
                added + corner[3] * wide if added else to)  # fmt: skip

    def _settle(self, left: int, right: int, out: int, added: int, alpha: complex, beta: complex,
                bias: int, aux: int) -> None:  # fmt: skip
        """Choose the fastest algorithm. Results go into memory of its own, so that nothing that
        the caller has is written."""
        self.settled = True
        size = self._extent()
        epilogue = self.kind.epilogue
        scratch, beside = Block(size, Current.device), None
        if epilogue in WRITING_BESIDE:
            beside = Block(size, Current.device)
            if epilogue == numbers.BGRADB:
                bias = beside.address
            else:
                aux = beside.address

        def attempt(found: Found) -> None:
            self.chosen = addressof(found)
            call = self._pointed(bias, aux)
            self._launch(call, left, right, scratch.address, added, alpha, beta)

        with self.lock:
            ways = [lambda found=found: attempt(found) for found in self.found]  # type: ignore[misc]
            self.chosen = addressof(self.found[fastest(ways)])
            self.calls.clear()

    def _extent(self) -> int:
        """Bytes from the first to behind the last element of the result."""
        product = self.product
        size = (product.rows - 1) * product.out.ld + product.columns
        size += (product.batch - 1) * product.out.step + max(c[2] for c in product.outer)
        return int(size * self.sizes[1])


@cache
def _numpy(name: str) -> Any:
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return name
