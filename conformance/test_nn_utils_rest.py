"""Fusion, skip_init, memory formats, clipping, vectors and packed sequences, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.side_by_side import attempt, compare

# ---- fusion

CONVS = {
    "Conv1d": ("nn.Conv1d(2, 3, 2)", "nn.BatchNorm1d({})", (2, 2, 5)),
    "Conv2d": ("nn.Conv2d(2, 4, 3, groups=2, bias=False)", "nn.BatchNorm2d({})", (2, 2, 5, 5)),
    "Conv3d": ("nn.Conv3d(1, 3, 2)", "nn.BatchNorm3d({})", (1, 1, 3, 3, 3)),
    "ConvTranspose1d": ("nn.ConvTranspose1d(2, 3, 2)", "nn.BatchNorm1d({})", (2, 2, 5)),
    "ConvTranspose2d": ("nn.ConvTranspose2d(2, 3, 2)", "nn.BatchNorm2d({})", (2, 2, 4, 4)),
    "ConvTranspose3d": ("nn.ConvTranspose3d(1, 2, 2, bias=False)", "nn.BatchNorm3d({})",
                        (1, 1, 3, 3, 3)),
}  # fmt: skip


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("kind", CONVS)
def test_fused_convolutions(kind: str, affine: bool):
    def scenario(torch: Any) -> Any:
        conv_text, bn_text, shape = CONVS[kind]
        conv = eval(conv_text, {"nn": torch.nn})
        bn = eval(bn_text.format(f"{conv.out_channels}, affine={affine}"), {"nn": torch.nn})
        bn(conv(torch.randn(shape)))
        conv.eval(), bn.eval()
        fuse, x = torch.nn.utils.fuse_conv_bn_eval, torch.randn(shape)
        fused = fuse(conv, bn, transpose=kind.startswith("ConvTranspose"))
        close = bool(torch.allclose(fused(x), bn(conv(x)), atol=1e-5))
        return fused, fused(x), close, fused.state_dict(), conv.state_dict(), list(
            fused.named_parameters())  # fmt: skip

    compare(scenario, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("bias", "features"), [(True, 4), (False, 4), (True, 1)])
def test_fused_linear(bias: bool, features: int):
    def scenario(torch: Any) -> Any:
        linear = torch.nn.Linear(3, 4, bias=bias)
        bn = torch.nn.BatchNorm1d(features)
        bn.running_mean.normal_()
        bn.running_var.uniform_(0.5, 2)
        linear.eval(), bn.eval()
        fused = torch.nn.utils.fuse_linear_bn_eval(linear, bn)
        return fused, fused(torch.randn(2, 3)), fused.state_dict(), linear.state_dict()

    compare(scenario, rtol=1e-3, atol=1e-5)


def test_fusion_of_weights_and_errors():
    def scenario(torch: Any) -> Any:
        U, nn = torch.nn.utils, torch.nn
        mean, var = torch.randn(3), torch.rand(3)
        half = torch.randn(3, 2).half().requires_grad_()
        conv, linear, bn = nn.Conv2d(2, 3, 1), nn.Linear(2, 3), nn.BatchNorm2d(3)
        bare = nn.BatchNorm2d(3, track_running_stats=False).eval()
        return [
            U.fuse_conv_bn_weights(torch.randn(3, 2, 1), None, mean, var, 1e-5, None, None),
            U.fuse_conv_bn_weights(torch.randn(2, 3), None, mean, var, 1e-3, var, mean, True),
            U.fuse_linear_bn_weights(half, None, mean, var, 1e-5, var, mean),
            attempt(U.fuse_conv_bn_eval, conv, bn),
            attempt(U.fuse_conv_bn_eval, conv.eval(), bn),
            attempt(U.fuse_conv_bn_eval, conv, bare),
            attempt(U.fuse_linear_bn_eval, linear, bn),
            attempt(U.fuse_linear_bn_eval, linear.eval(), nn.BatchNorm1d(2).eval()),
            attempt(U.fuse_linear_bn_eval, linear, bare),
        ]

    compare(scenario, rtol=1e-3, atol=1e-5)


# ---- skip_init and memory formats

SKIPPED = ["Linear(3, 4)", "Conv2d(2, 3, 3, bias=False)", "LSTM(3, 4)", "MultiheadAttention(4, 2)",
           "Embedding(3, 4)", "BatchNorm1d(3)", "Transformer(4, 2, 1, 1, 8)"]  # fmt: skip


@pytest.mark.parametrize("text", SKIPPED)
def test_skip_init(text: str):
    def scenario(torch: Any) -> Any:
        name, _, arguments = text.rstrip(")").partition("(")
        given = eval(f"({arguments},)") if "=" not in arguments else (2, 3, 3)
        module = torch.nn.utils.skip_init(getattr(torch.nn, name), *given)
        shapes = {key: str(value.shape) for key, value in module.state_dict().items()}
        module_64 = torch.nn.utils.skip_init(torch.nn.Linear, 2, 2, dtype=torch.float64)
        return type(module), str(module), shapes, module_64.weight.dtype, torch.randn(3)

    compare(scenario)


def test_skip_init_errors():
    def scenario(torch: Any) -> Any:
        skip = torch.nn.utils.skip_init
        return [attempt(skip, torch.nn.ReLU), attempt(skip, torch.nn.Linear, 3)]

    compare(scenario)
    # Torch's text holds the class, whose module differs.
    import flambeau

    with pytest.raises(RuntimeError, match="Expected a Module; got <class 'int'>"):
        flambeau.nn.utils.skip_init(int)


@pytest.mark.parametrize("name", ["channels_last", "contiguous_format"])
def test_memory_format_of_2d(name: str):
    def scenario(torch: Any) -> Any:
        nn = torch.nn
        net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Sequential(nn.ConvTranspose2d(3, 2, (1, 2))),
                            nn.Conv2d(2, 2, 1), nn.Conv3d(1, 1, 2), nn.Linear(2, 2))  # fmt: skip
        weight = net[0].weight
        made = nn.utils.convert_conv2d_weight_memory_format(net, getattr(torch, name))
        return made is net, net[0].weight is weight, net.state_dict()

    compare(scenario, strides=True)


@pytest.mark.parametrize("name", ["channels_last_3d", "contiguous_format"])
def test_memory_format_of_3d(name: str):
    def scenario(torch: Any) -> Any:
        nn = torch.nn
        net = nn.Sequential(nn.Conv3d(2, 3, 2), nn.ConvTranspose3d(3, 2, 2), nn.Conv2d(2, 2, 2))
        nn.utils.convert_conv3d_weight_memory_format(net, getattr(torch, name))
        wrong = attempt(nn.utils.convert_conv3d_weight_memory_format, net, torch.channels_last)
        return net.state_dict(), wrong

    compare(scenario, strides=True)


# ---- clipping and vectors


@pytest.mark.parametrize("foreach", [None, True, False])
@pytest.mark.parametrize("norm_type", [2.0, 1, 0.5, float("inf"), float("-inf"), 0])
def test_clipping_by_norm(norm_type: float, foreach: bool | None):
    def scenario(torch: Any) -> Any:
        U = torch.nn.utils
        params = [torch.nn.Parameter(torch.randn(shape)) for shape in ((3, 2), (4,), ())]
        params[1].data = params[1].data.double()
        params.append(torch.nn.Parameter(torch.randn(2)))
        results = []
        for limit in (0.1, 1000.0):
            for parameter in params[:3]:
                parameter.grad = torch.randn_like(parameter) * 3
            results.append(U.clip_grad_norm_(params, limit, norm_type, foreach=foreach))
            results.append([parameter.grad for parameter in params])
        grads = [parameter.grad for parameter in params[:3]]
        total = U.get_total_norm(grads, norm_type, foreach=foreach)
        U.clip_grads_with_norm_(params, 0.01, total, foreach=foreach)
        U.clip_grad_norm_(params[0], 0.001, norm_type)
        return [*results, total, [parameter.grad for parameter in params]]

    compare(scenario)


def test_more_clipping():
    def scenario(torch: Any) -> Any:
        U = torch.nn.utils
        params = [torch.nn.Parameter(torch.randn(3)) for _ in range(2)]
        for parameter in params:
            parameter.grad = torch.randn(3) * 5
        results = [U.clip_grad_value_(params, 2.5), [p.grad for p in params]]
        results.append(U.clip_grad_value_(params[0], 1, foreach=True))
        results.append(U.clip_grad_value_(iter(params), 2, foreach=False))
        params[0].grad[1] = float("inf")
        results.append(attempt(U.clip_grad_norm_, params, 1.0, error_if_nonfinite=True))
        results.append(U.clip_grad_norm_([], 1.0))
        results.append(U.clip_grad_norm_((p for p in ()), 1.0))
        results.append(U.clip_grad_norm(params[1:], 1.0))
        results.append(U.clip_grad_norm_(params, 1.0))
        results += [U.get_total_norm([]), U.get_total_norm(params[0]), [p.grad for p in params]]
        results.append(attempt(U.clip_grad_norm_, params, "a"))
        results.append(attempt(U.clip_grad_value_, params, "a"))
        return results

    compare(scenario)


def test_vectors():
    def scenario(torch: Any) -> Any:
        U = torch.nn.utils
        net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1, bias=False))
        vector = U.parameters_to_vector(net.parameters())
        (vector * torch.arange(10.0)).sum().backward()
        grads = [p.grad for p in net.parameters()]
        new = torch.arange(12.0)
        U.vector_to_parameters(new, net.parameters())
        new[0] = 99
        return [
            vector, grads, net.state_dict(), net[0].weight[0, 0],
            attempt(U.vector_to_parameters, [1, 2], net.parameters()),
            attempt(U.vector_to_parameters, torch.ones(3), net.parameters()),
            attempt(U.parameters_to_vector, []),
            attempt(U.parameters_to_vector, [torch.ones(2, 3).t()]),
        ]  # fmt: skip

    compare(scenario)
