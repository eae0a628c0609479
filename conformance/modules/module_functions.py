"""Functions behind layers: what they refuse, and how their results lie in memory.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

from conformance.modules.module_attempts import tried


def grids_of_unit_size(t):
    theta = t.ones(1, 2, 3)
    sizes = ((1, 1, 2, 1), (1, 1, 2, 2), (1, 1, 1, 1))
    return [
        t.nn.functional.affine_grid(theta, size, align_corners=align)
        for size in sizes
        for align in (True, False)
    ]


def folds_without_blocks(t):
    given = (((4, 5), (2, 2), 8, 12), ((4, 5), (8, 2), 1, 16), ((4, 5), (2, 2), 1, 12))
    return [
        tried(lambda: t.nn.Fold(size, kernel, dilation)(t.ones(1, count, 12)))  # noqa: B023
        for size, kernel, dilation, count in given
    ]


def slopes_of_activations_in_place(t):
    found = []
    for name in ("elu_", "celu_", "leaky_relu_"):
        for slope in (-2.0, 0.5, 1.5):
            x = t.tensor([-1.0, 0.0, 2.0], requires_grad=True)
            y = getattr(t.nn.functional, name)(x.clone(), slope)
            found.append(tried(lambda: t.autograd.grad(y.pow(2).sum(), x)))  # noqa: B023
    return found


def bags_of_wrong_numbers(t):
    found = []
    for mode in ("sum", "mean", "max"):
        for padding in (None, 0):
            for dtype in (t.float32, t.float64):
                for numbers in ([[-1, 1]], [[1, 11]]):
                    found.append(
                        tried(
                            lambda: t.nn.functional.embedding_bag(
                                t.tensor(numbers),  # noqa: B023
                                t.ones(10, 2, dtype=dtype),  # noqa: B023
                                mode=mode,  # noqa: B023
                                padding_idx=padding,  # noqa: B023
                            )
                        )
                    )
    weights = t.ones(2, dtype=t.float64)
    layer = t.nn.EmbeddingBag(5, 2, mode="sum")
    found.append(tried(lambda: layer(t.tensor([1, 2]), t.tensor([0]), weights)))
    return found


def bags_behind_the_last_offset(t):
    found = []
    for mode in ("sum", "max"):
        for padding in (None, 4, 0):
            for dtype in (t.float32, t.float64):
                table = t.arange(10, dtype=dtype).view(5, 2)
                found.append(
                    t.nn.functional.embedding_bag(
                        t.arange(5), table, t.tensor([0, 1, 3]), mode=mode,
                        include_last_offset=True, padding_idx=padding,
                    )
                )  # fmt: skip
    return found


def tables_without_columns(t):
    found = []
    for rows in (10, 1):
        layer = t.nn.Embedding(rows, 0, sparse=True)
        layer(t.tensor([[0, 0]])).sum().backward()
        found.append(list(layer.weight.grad.shape))
    return found


POOLS = ("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
         "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")  # fmt: skip


def adaptive_pools_of_nothing(t):
    found = []
    for name in POOLS:
        dims = int(name[-2])
        for shape in ((0, *[4] * dims), (2, 0, *[4] * dims), (0, 2, *[4] * dims),
                      (2, *[4] * (dims - 1), 0)):  # fmt: skip
            pool = getattr(t.nn.functional, name)
            found.append((name, shape, tried(lambda: pool(t.ones(shape), 3))))  # noqa: B023
        x = t.ones(1, 2, *[4] * dims, requires_grad=True)
        found.append(tried(lambda: pool(x, 0).sum().backward()))  # noqa: B023
    return found


def fractional_pools_to_nothing(t):
    flat = t.nn.FractionalMaxPool2d(2, output_size=(0, 1))
    deep = t.nn.FractionalMaxPool3d(2, output_size=(1, 0, 1))
    return flat(t.ones(1, 9, 9)), deep(t.ones(1, 9, 9, 9))


def memory_of_pools(t):
    f = t.nn.functional
    x = t.arange(216.0).view(2, 3, 6, 6).to(memory_format=t.channels_last)
    y = t.ones(2, 3, 6, 6, 6).to(memory_format=t.channels_last_3d)
    results = [
        *f.adaptive_max_pool2d(x, (4, 4), True), f.adaptive_max_pool3d(y, 4),
        f.adaptive_avg_pool2d(x, 4), f.adaptive_avg_pool3d(y, 4), f.adaptive_avg_pool2d(x, 1),
        f.adaptive_avg_pool3d(y, 1), f.avg_pool2d(x, 2), f.avg_pool3d(y, 2), f.max_pool3d(y, 2),
        f.max_unpool2d(*f.max_pool2d(x, 2, return_indices=True), 2),
        f.max_unpool3d(*f.max_pool3d(y, 2, return_indices=True), 2),
    ]  # fmt: skip
    return [(list(result.shape), list(result.stride())) for result in results]


def sizes_that_are_no_integers(t):
    x = t.ones(1, 1, 4, 4)
    sizes = ((2.0, 2.0), (t.tensor(2), t.tensor(2)), (3, t.tensor(2)))
    return [tried(lambda: t.nn.functional.interpolate(x, size=size)) for size in sizes]  # noqa: B023


def losses_without_classes(t):
    entropy = t.nn.functional.cross_entropy
    return [tried(lambda: entropy(t.ones(n, c), t.ones(n, c))) for n, c in ((5, 0), (0, 3))]  # noqa: B023


def sparse_inputs_of_linear(t):
    layer = t.nn.Linear(3, 2)
    with t.no_grad():
        layer.weight.copy_(t.arange(6.0).view(2, 3))
        layer.bias.fill_(1)
    x = t.eye(3).to_sparse()
    y = layer(x)
    y.sum().backward()
    return y, layer.weight.grad, layer.bias.grad, type(x).__name__


def classes_of_errors_about_sparse_tensors(t):
    return tried(lambda: t.nn.GELU()(t.eye(2).to_sparse()))[0]
