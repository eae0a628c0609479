"""`backward` and `grad`: what they need, return, accumulate and refuse.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

# ---- backward


def backward_twice(t):
    x = t.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


def backward_twice_without_saved(t):
    x = t.ones(2, requires_grad=True)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    return x.grad


def backward_twice_retained(t):
    x = t.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


def backward_of_vector(t):
    (t.ones(2, requires_grad=True) * 2).backward()


def backward_of_complex(t):
    (t.ones((), dtype=t.complex64, requires_grad=True) * 2).backward()


def backward_without_grad(t):
    t.ones(()).backward()


def backward_with_wrong_gradient(t):
    (t.ones(2, requires_grad=True) * 2).backward(t.ones(3))


def backward_with_wrong_gradient_type(t):
    (t.ones(2, requires_grad=True) * 2).backward([1.0, 2.0])


def backward_with_number(t):
    (t.ones(2, requires_grad=True) * 2).backward(2.0)


def backward_of_many(t):
    x = t.ones(2, requires_grad=True)
    t.autograd.backward([x.sum(), (x * x).sum()], [t.tensor(2.0), None])
    return x.grad


def backward_of_many_wrong_count(t):
    x = t.ones(2, requires_grad=True)
    t.autograd.backward([x.sum(), (x * x).sum()], [t.tensor(2.0)])


def backward_inputs(t):
    x, y = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    (x * y).sum().backward(inputs=[x])
    return x.grad, y.grad


def backward_inputs_empty(t):
    x = t.ones(2, requires_grad=True)
    x.sum().backward(inputs=[])


def backward_inputs_non_leaf(t):
    x = t.ones(2, requires_grad=True)
    y = x * 2
    (y * 3).sum().backward(inputs=[y])
    return x.grad, y.grad


def create_graph_grads_have_history(t):
    x = t.tensor([2.0], requires_grad=True)
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    x.grad = None
    first.sum().backward()
    return first, first.requires_grad, x.grad


def third_derivative(t):
    x = t.tensor(2.0, requires_grad=True, dtype=t.float64)
    y = x**4
    found = []
    for _ in range(4):
        (y,) = t.autograd.grad(y, x, create_graph=True)
        found.append(y)
    return found


def accumulates_in_place(t):
    x = t.ones(2, requires_grad=True)
    x.sum().backward()
    first = x.grad
    x.sum().backward()
    return first is x.grad, x.grad


def grad_takes_leaf_strides(t):
    x = t.ones(2, 3).t().requires_grad_()
    (x * 2).sum().backward()
    y = t.ones(2, 3, requires_grad=True)
    y.t().contiguous().sum().backward()
    return x.grad.stride(), y.grad.stride()


def grad_dtype_follows_input(t):
    x = t.ones(2, dtype=t.float16, requires_grad=True)
    (x.double() * 2).sum().backward()
    return x.grad


def grad_of_broadcast(t):
    x, y = t.ones(3, 1, requires_grad=True), t.ones(2, requires_grad=True)
    (x * y + 1).sum().backward()
    return x.grad, y.grad


def real_input_of_complex_result(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    (x * t.tensor([1j, 2 + 1j])).abs().sum().backward()
    return x.grad


def unreachable_part(t):
    x = t.ones(2, requires_grad=True)
    a, b = x.unbind()
    a.backward()
    return x.grad


# ---- grad


def grad_unused(t):
    x, y = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    t.autograd.grad(x.sum(), [x, y])


def grad_allow_unused(t):
    x, y = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    return t.autograd.grad(x.sum(), [x, y], allow_unused=True)


def grad_materialize(t):
    x, y = t.ones(2, requires_grad=True), t.ones(3, requires_grad=True)
    return t.autograd.grad(x.sum(), [x, y], materialize_grads=True)


def grad_materialize_conflict(t):
    x = t.ones(2, requires_grad=True)
    t.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)


def grad_of_no_grad_input(t):
    x, y = t.ones(2, requires_grad=True), t.ones(2)
    t.autograd.grad((x * y).sum(), y)


def grad_of_intermediate(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    z = (y * y).sum()
    return t.autograd.grad(z, [y, x]), x.grad


def grad_same_input_twice(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    return t.autograd.grad((x * x).sum(), [x, x])


def grad_of_output_itself(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    return t.autograd.grad(x, x, t.tensor([3.0, 4.0]))


def grad_batched(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    return t.autograd.grad(x * x, x, t.eye(2), is_grads_batched=True)


def grad_wrong_shape(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    t.autograd.grad(x * x, x, t.ones(3))


def grad_leaves_grad_alone(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    t.autograd.grad((x * x).sum(), x)
    return x.grad


def grad_of_dict(t):
    inputs = {"a": t.ones(2, requires_grad=True), "b": t.full((2,), 3.0, requires_grad=True)}
    return t.autograd.grad((inputs["a"] * inputs["b"]).sum(), inputs)


def grad_by_position(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    return t.autograd.grad((x**3).sum(), x, None, None, True, True, True)


def grad_only_inputs(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    return [t.autograd.grad((x * x).sum(), x, only_inputs=only) for only in (True, False)]


def grad_of_nothing(t):
    x = t.ones(1, requires_grad=True)
    t.autograd.grad(x * 2, [])


def batched_gradients_of_a_wrong_shape(t):
    x = t.ones(2, 2, requires_grad=True)
    try:
        t.autograd.grad(x.clone(), x, t.ones(2, 3), is_grads_batched=True)
    except RuntimeError as error:
        return str(error).partition("a shape of")[0]
    return None


def batched_gradients_of_another_type(t):
    x = t.ones(2, requires_grad=True)
    return t.autograd.grad(x.sum(), x, t.arange(3), is_grads_batched=True)


def edges_as_roots(t):
    edge = t.autograd.graph.get_gradient_edge
    x = t.ones(2, requires_grad=True)
    found = [t.autograd.grad(edge((x * 2).sum()), x)[0]]
    t.autograd.backward(edge((x * 3).sum()))
    found.append(x.grad)
    for root, start in (
        (x * 2, None), (x * 2, t.ones(4)), (x * 2j, t.ones(2)), ((x * 2j).sum(), None),
    ):  # fmt: skip
        try:
            found.append(t.autograd.grad(edge(root), x, start))
        except RuntimeError as error:
            found.append(str(error))
    return found


def edges_of_another_type_than_their_gradient(t):
    x = t.ones(2, requires_grad=True)
    edge = t.autograd.graph.get_gradient_edge(x * 2)
    return t.autograd.grad(edge, x, t.ones(2, dtype=t.float64))


def materialized_edges(t):
    x, y = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    edge = t.autograd.graph.get_gradient_edge(y)
    t.autograd.grad(x.sum(), (x, edge), materialize_grads=True, allow_unused=True)
