"""What both layouts share: how a call finds its form, and forms that go row by row.

A nested tensor is made of ordinary tensors: a jagged one keeps the elements of all rows in one, a
strided one keeps a tensor for each row. What is recorded for gradients are their operators; a
nested tensor has no memory and no node of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flambeau._tensor.tensor import Tensor, new

Form = Callable[..., Any]


class Nested(Tensor):
    """A batch of tensors of different sizes, which has one form for all and none of its own."""

    _forms: dict[str, Form] = {}  # noqa: RUF012  # each class has its own
    detach: Any  # methods of Tensor, which find their forms
    permute: Any
    to: Any
    transpose: Any

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Find the form of a function for nested tensors, by its name."""
        name = name_of(func)
        form = cls._forms.get(name)
        if form is not None:
            return form(*args, **(kwargs or {}))
        if is_elementwise(name):
            return cls._elementwise(func, name, args, kwargs or {})
        raise NotImplementedError(cls._refusal(name))

    @classmethod
    def _elementwise(cls, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError

    @classmethod
    def _refusal(cls, name: str) -> str:
        raise NotImplementedError

    def dim(self) -> int:
        """How many dims it has, that of the batch among them."""
        raise NotImplementedError

    def _rows(self) -> list[Any]:
        raise NotImplementedError

    def _pieces(self) -> list[Any]:
        """The ordinary tensors that gradients go to."""
        raise NotImplementedError

    def _like(self, pieces: list[Any]) -> Any:
        """A nested tensor of the same sizes with other numbers."""
        raise NotImplementedError

    # ---- what autograd asks

    @property
    def requires_grad(self) -> bool:
        return any(piece.requires_grad for piece in self._pieces())

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Let gradients be kept for it, or not."""
        for piece in self._pieces():
            piece.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        return all(piece.is_leaf for piece in self._pieces())

    @property
    def grad_fn(self) -> Any:
        return next((piece.grad_fn for piece in self._pieces() if piece.grad_fn), None)

    @property
    def grad(self) -> Any:
        grads = [piece.grad for piece in self._pieces()]
        if all(grad is None for grad in grads):
            return None
        pairs = zip(self._pieces(), grads, strict=True)
        return self._like([piece.new_zeros(piece.shape) if g is None else g for piece, g in pairs])

    @grad.setter
    def grad(self, value: Any) -> None:
        values = [None] * len(self._pieces()) if value is None else value._pieces()
        for piece, grad in zip(self._pieces(), values, strict=True):
            piece.grad = grad

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Any:
        """All rows in one ordinary tensor: see `torch.nested.to_padded_tensor`."""
        return self._forms["to_padded_tensor"](self, padding, output_size)

    def retain_grad(self) -> None:
        """Keep the gradient though it is no leaf."""
        for piece in self._pieces():
            piece.retain_grad()

    def backward(self, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False,
                 inputs: Any = None) -> None:  # fmt: skip
        """Gradients of all leaves, from one of the same sizes.

        Raises:
            RuntimeError: there is no gradient to begin with.
        """
        from flambeau import autograd

        if gradient is None:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        autograd.backward(self._pieces(), gradient._pieces(), retain_graph, create_graph,
                          inputs=inputs)  # fmt: skip

    # ---- what is the same for both

    is_nested = True
    is_sparse = False
    is_meta = False
    is_cuda = False
    is_quantized = False

    @property
    def dtype(self) -> Any:
        return self._sample().dtype

    @property
    def device(self) -> Any:
        return self._sample().device

    @property  # type: ignore[misc]
    def data(self) -> Any:
        return self.detach()

    @property
    def mT(self) -> Any:  # noqa: N802
        return self.transpose(-1, -2)

    @property
    def T(self) -> Any:  # noqa: N802
        return self.permute(*range(self.dim())[::-1])

    @property
    def itemsize(self) -> int:
        return self._sample().itemsize

    @property
    def nbytes(self) -> int:
        return self.numel() * self.itemsize

    def _sample(self) -> Any:
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        return self.dim()

    def numel(self) -> int:
        """How many elements all rows have."""
        return sum(row.numel() for row in self._rows())

    nelement = numel

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.itemsize

    def is_floating_point(self) -> bool:
        """Whether its elements are real numbers with a fraction."""
        return self._sample().is_floating_point()

    def is_complex(self) -> bool:
        """Whether its elements are complex."""
        return self._sample().is_complex()

    def storage_offset(self) -> int:
        """0: its numbers begin where their memory does."""
        return 0

    def item(self) -> Any:
        """Its one element as a number; RuntimeError if it has several."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to "
                               "Scalar")  # fmt: skip
        return next(row.item() for row in self._rows() if row.numel())

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    def __contains__(self, element: Any) -> bool:
        return any(element in row for row in self._rows())

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        pieces = [piece.detach().clone().requires_grad_(piece.requires_grad)
                  for piece in self._pieces()]  # fmt: skip
        copied = memo[id(self)] = self._like(pieces)
        return copied

    def __hash__(self) -> int:
        return id(self)

    def _dim(self, dim: int) -> int:
        """A dim counted from the front; IndexError if there is none."""
        count = self.dim()
        if not -count <= dim < count:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, "
                             f"{count - 1}], but got {dim})")  # fmt: skip
        return dim % count


def name_of(func: Any) -> str:
    """The name under which a function, method or property has its form."""
    if func.__name__ in ("__get__", "__set__"):
        getter = getattr(func.__self__, "fget", None)
        return f"property {getattr(getter, '__name__', '')}"
    return str(func.__name__)


SAME_SIZES = frozenset(
    "relu relu_ relu6 gelu silu mish elu selu celu leaky_relu hardtanh hardswish hardsigmoid "
    "softplus logsigmoid dropout dropout_ native_dropout alpha_dropout feature_dropout where "
    "masked_fill masked_fill_ clamp clamp_ clip to half float double bfloat16 int long bool type "
    "type_as clone detach detach_ contiguous zero_ fill_ copy_ nan_to_num zeros_like ones_like "
    "empty_like full_like rand_like randn_like randint_like bernoulli bernoulli_ normal_ uniform_ "
    "threshold sigmoid tanh softsign tanhshrink hardshrink softshrink requires_grad_ cpu "
    "__and__ __or__ __xor__ __invert__ __eq__ __rsub__ __rpow__ __pow__ __rtruediv__ "
    "__floordiv__ __rfloordiv__ __rdiv__ __rmod__ isclose positive".split()
)
"""Functions besides the pointwise rows of which each result element goes with one element."""


def is_elementwise(name: str) -> bool:
    """Whether a function goes over elements, each for itself."""
    if name in SAME_SIZES:
        return True
    from flambeau._ops.table.op import BY_NAME

    plain = name if name.startswith("__") else name.removesuffix("_")
    rows = BY_NAME.get(name) or BY_NAME.get(plain) or BY_NAME.get(f"special.{plain}") or []
    return any(row.elementwise for row in rows)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of any kind."""
    return isinstance(value, Tensor)


def nested_in(values: Any) -> Iterator[Nested]:
    """The nested tensors among arguments."""
    for value in values:
        if isinstance(value, Nested):
            yield value


def instance(cls: Any) -> Any:
    """A tensor of a class, without memory."""
    made = new(cls)
    made._requires_grad = False
    return made


# ---- forms that go row by row


def to_padded(nested: Nested, padding: float, sizes: Any) -> Any:
    """All rows in one tensor of these sizes, with `padding` where a row ends."""
    from flambeau._ops.table.namespace import ops

    rows = []
    for row in nested._rows():
        steps = []
        for have, want in zip(reversed(row.shape), reversed(tuple(sizes)[1:]), strict=True):
            steps += [0, int(want) - have]
        rows.append(ops.constant_pad_nd(row, steps, padding))
    return ops.stack(rows)


def autograd_grad(outputs: Any, inputs: Any, grad_outputs: Any = None, *args: Any,
                  **kwargs: Any) -> tuple[Any, ...]:  # fmt: skip
    """`torch.autograd.grad` where some of the tensors are nested."""
    from flambeau import autograd

    outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    given = grad_outputs if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)
    starts = [None] * len(outputs) if grad_outputs is None else _flat(given)
    found = iter(autograd.grad(_flat(outputs), _flat(inputs), starts, *args, **kwargs))
    results = []
    for one in inputs:
        if isinstance(one, Nested):
            results.append(one._like([next(found) for _ in one._pieces()]))
        else:
            results.append(next(found))
    return tuple(results)


def autograd_backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> None:
    """`torch.autograd.backward` where some of the tensors are nested."""
    from flambeau import autograd

    tensors = tensors if isinstance(tensors, (tuple, list)) else (tensors,)
    given = grad_tensors if isinstance(grad_tensors, (tuple, list)) else (grad_tensors,)
    starts = None if grad_tensors is None else _flat(given)
    autograd.backward(_flat(tensors), starts, *args, **kwargs)


def _flat(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found += value._pieces() if isinstance(value, Nested) else [value]
    return found


COMMON: dict[str, Form] = {"grad": autograd_grad, "backward": autograd_backward}
