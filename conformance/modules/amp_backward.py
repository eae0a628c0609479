"""Backward in regions of autocast: products in gradients are rounded, gradients keep their types.

What is compared is which gradients are rounded; their values `amp_programs` compares.
"""

from __future__ import annotations

from typing import Any


def number(library: Any, *sizes: int, start: float = -1.3) -> Any:
    """A leaf of numbers that bfloat16 has not."""
    count = library.Size(sizes).numel()
    return library.linspace(start, 1.7, count).reshape(sizes).requires_grad_()


def rounded(grad: Any, plain: Any) -> Any:
    """The type of a gradient, and whether it differs from the one outside of regions."""
    far = (grad - plain).abs().max() > 1e-4 * plain.abs().max()
    return str(grad.dtype).rpartition(".")[2], bool(far)


def around(library: Any, function: Any, *leaves: Any, twice: bool = True) -> list[Any]:
    """Gradients with forward, backward and both in a region; and of gradients."""
    plain = _once(library, function, leaves, False, False)
    found = []
    for regions in ((False, True), (True, True), (True, False)):
        grads = _once(library, function, leaves, *regions)
        found.append([rounded(grad, p) for grad, p in zip(grads, plain, strict=True)])
    if not twice:
        return found
    once, plain = (_twice(library, function, leaves, region) for region in (True, False))
    return [*found, [rounded(grad, p) for grad, p in zip(once, plain, strict=True)]]


def _once(library: Any, function: Any, leaves: Any, forward: bool, backward: bool) -> Any:
    with library.autocast("cpu", enabled=forward):
        result = function(*leaves)
    weights = library.linspace(0.3, 1.1, result.numel()).reshape(result.shape)
    with library.autocast("cpu", enabled=backward):
        return library.autograd.grad((result.float() * weights).sum(), leaves)


def _twice(library: Any, function: Any, leaves: Any, region: bool) -> Any:
    result = function(*leaves)
    grads = library.autograd.grad((result**2).sum(), leaves, create_graph=True)
    with library.autocast("cpu", enabled=region):
        return library.autograd.grad(sum((grad * 1.1).sum() for grad in grads), leaves)


def backward_alone(library: Any, result: Any, leaves: Any) -> Any:
    """Gradients of a result that was computed outside, in a region."""
    total = (result * 1.37).sum()
    plain = library.autograd.grad(total, leaves, retain_graph=True)
    with library.autocast("cpu"):
        grads = library.autograd.grad(total, leaves)
    return [rounded(grad, p) for grad, p in zip(grads, plain, strict=True)]


def mm(library: Any) -> Any:
    leaves = number(library, 2, 3), number(library, 3, 4, start=0.1)
    return around(library, lambda a, b: library.mm(a, b) * 1.1, *leaves)


def matmul_of_all_ranks(library: Any) -> Any:
    shapes = (
        ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 2, 3), (3,)), ((2, 2, 3), (3, 4)),
        ((3,), (2, 3, 4)), ((2, 3), (2, 3, 4)), ((2, 2, 3), (2, 3, 2)),
    )  # fmt: skip
    return [
        around(
            library,
            library.matmul,
            number(library, *left),
            number(library, *right, start=0.1),
            twice=(len(left), len(right)) != (1, 3),
        )
        for left, right in shapes
    ]


def batches_that_broadcast(library: Any) -> Any:
    left, right = number(library, 3, 2, 3), number(library, 1, 3, 2, start=0.1)
    return backward_alone(library, library.matmul(left, right), (left, right))


def sums_of_products(library: Any) -> Any:
    found = [around(library, library.addmm, number(library, 2, 4), number(library, 2, 3),
                    number(library, 3, 4, start=0.1))]  # fmt: skip
    batches = number(library, 2, 2, 3), number(library, 2, 3, 2, start=0.1)
    found.append(around(library, library.bmm, *batches))
    found.append(around(library, library.baddbmm, number(library, 2, 2, 2), *batches))
    return [*found, around(library, library.addbmm, number(library, 2, 2), *batches)]


def products_that_choose_nothing(library: Any) -> Any:
    """`mv`, `outer`, `addmv` and `addr` are not in the CPU's lists, nor is their backward."""
    matrix, left, right = number(library, 2, 3), number(library, 2), number(library, 3, start=0.1)
    return [
        around(library, library.mv, matrix, right),
        around(library, library.outer, left, right),
        around(library, library.addmv, left, matrix, right),
        around(library, library.addr, matrix, left, right),
    ]


def linear(library: Any) -> Any:
    """The gradient of a bias is a sum, which chooses nothing."""
    function = library.nn.functional.linear
    weight, bias = number(library, 4, 3, start=0.1), number(library, 4)
    return [
        around(library, function, number(library, 2, 3), weight, bias),
        around(library, function, number(library, 2, 3), weight),
    ]


def convolutions_choose_nothing_backward(library: Any) -> Any:
    image, kernel = number(library, 1, 2, 4, 4), number(library, 2, 2, 3, 3, start=0.1)
    return backward_alone(library, library.conv2d(image, kernel), (image, kernel))


def decompositions(library: Any) -> Any:
    matrix = number(library, 3, 3)
    positive = (matrix @ matrix.T + 3 * library.eye(3)).detach().requires_grad_()
    functions = library.linalg.inv, library.linalg.cholesky, library.linalg.det
    return [backward_alone(library, function(positive), [positive]) for function in functions]


def losses_and_norms(library: Any) -> Any:
    functional = library.nn.functional
    given, target = number(library, 3, 4), number(library, 3, 4, start=0.2)
    functions = (
        functional.mse_loss, lambda a, b: functional.layer_norm(a * b, (4,)),
        lambda a, b: (a.softmax(-1) * b).sum(), lambda a, b: functional.huber_loss(a, b),
    )  # fmt: skip
    return [backward_alone(library, f(given, target), (given, target)) for f in functions]


def hooks_see_the_types_of_tensors(library: Any) -> Any:
    left, right = number(library, 2, 3), number(library, 3, 4, start=0.1)
    middle = left @ right
    seen: list[Any] = []
    for tensor in (left, right, middle):
        tensor.register_hook(lambda grad: seen.append(str(grad.dtype)))
    with library.autocast("cpu"):
        (middle * 1.37).sum().backward()
    return seen, str(left.grad.dtype), str(right.grad.dtype)


def hooks_run_from_the_first_argument_on(library: Any) -> Any:
    """The last argument is cast first."""
    seen: list[str] = []
    tensors = {"input": number(library, 2, 3), "weight": number(library, 4, 3),
               "bias": number(library, 4)}  # fmt: skip
    for name, tensor in tensors.items():
        tensor.register_hook(lambda grad, name=name: seen.append(name))
    with library.autocast("cpu"):
        result = library.nn.functional.linear(*tensors.values())
    result.float().sum().backward()
    return seen


def recorded_gradients(library: Any) -> Any:
    left, right = number(library, 2, 3), number(library, 3, 4, start=0.1)
    with library.autocast("cpu"):
        grads = library.autograd.grad((left @ right).sigmoid().sum(), (left, right),
                                      create_graph=True)  # fmt: skip
        second = library.autograd.grad(sum((grad**2).sum() for grad in grads), (left, right))
    return [[grad.dtype == library.float32, grad.requires_grad] for grad in grads], [
        grad.dtype == library.float32 for grad in second
    ]


def custom_functions(library: Any) -> Any:
    amp = library.amp

    class Product(library.autograd.Function):  # type: ignore[misc]
        @staticmethod
        @amp.custom_fwd(device_type="cpu")
        def forward(ctx: Any, left: Any, right: Any) -> Any:
            ctx.save_for_backward(left, right)
            return left.mm(right)

        @staticmethod
        @amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, grad: Any) -> Any:
            left, right = ctx.saved_tensors
            return grad.mm(right.t()), left.t().mm(grad)

    leaves = number(library, 2, 3), number(library, 3, 4, start=0.1)
    plain = library.autograd.grad(leaves[0].mm(leaves[1]).sum(), leaves)
    found = []
    for forward, backward in ((True, False), (False, True), (True, True)):
        with library.autocast("cpu", enabled=forward):
            result = Product.apply(*leaves)
        with library.autocast("cpu", enabled=backward):
            grads = library.autograd.grad(result.float().sum(), leaves)
        found.append([rounded(grad, p) for grad, p in zip(grads, plain, strict=True)])
    return found


def checkpoints_bring_the_region_back(library: Any) -> Any:
    checkpoint = library.utils.checkpoint.checkpoint
    found = []
    for reentrant in (True, False):
        seen: list[Any] = []

        def product(left: Any, right: Any, seen: Any = seen) -> Any:
            seen.append((library.is_autocast_enabled("cpu"), str((left @ right).dtype)))
            return (left @ right).sigmoid()

        leaves = number(library, 2, 3), number(library, 3, 4, start=0.1)
        with library.autocast("cpu", dtype=library.float16):
            result = checkpoint(product, *leaves, use_reentrant=reentrant)
        result.float().sum().backward()
        found.append((seen, [str(leaf.grad.dtype) for leaf in leaves]))
    return found


def attention_in_regions_of_two_types(library: Any) -> Any:
    attention = library.nn.MultiheadAttention(4, 2)
    with library.no_grad():
        for weight in attention.parameters():
            weight.copy_(library.linspace(-1, 1, weight.numel()).reshape(weight.shape))
    given = number(library, 3, 2, 4)
    with library.autocast("cpu"):
        result, _ = attention(given, given, given)
    with library.autocast("cpu", dtype=library.float16):
        grads = library.autograd.grad(result.float().sum(), (given, *attention.parameters()))
    return [str(grad.dtype) for grad in grads]
