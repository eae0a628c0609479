"""onnx2torch: ONNX graphs made by hand, turned into modules, run and trained."""

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx2torch import convert

draw = np.random.default_rng(0)


def weight(name, *shape):
    values = draw.normal(size=shape).astype(np.float32) * 0.4
    return numpy_helper.from_array(values, name)


def whole(name, values):
    return numpy_helper.from_array(np.array(values, dtype=np.int64), name)


nodes = [
    helper.make_node("Conv", ["image", "w1", "b1"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    helper.make_node("BatchNormalization", ["a", "scale", "shift", "mean", "var"], ["n"]),
    helper.make_node("Relu", ["n"], ["r"]),
    helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
    helper.make_node("Transpose", ["p"], ["t"], perm=[0, 2, 3, 1]),
    helper.make_node("Reshape", ["t", "flat"], ["f"]),
    helper.make_node("Gemm", ["f", "w2", "b2"], ["g"], transB=1, alpha=0.5),
    helper.make_node("LeakyRelu", ["g"], ["l"], alpha=0.2),
    helper.make_node("Slice", ["l", "starts", "ends", "axes"], ["s"]),
    helper.make_node("Concat", ["l", "s"], ["c"], axis=1),
    helper.make_node("Softmax", ["c"], ["chances"], axis=-1),
    helper.make_node("ReduceMean", ["c"], ["middle"], axes=[1], keepdims=0),
]
constants = [
    weight("w1", 4, 2, 3, 3), weight("b1", 4), weight("scale", 4), weight("shift", 4),
    weight("mean", 4), numpy_helper.from_array(np.full(4, 0.5, np.float32), "var"),
    whole("flat", [0, -1]), weight("w2", 5, 36), weight("b2", 5),
    whole("starts", [1]), whole("ends", [4]), whole("axes", [1]),
]  # fmt: skip
graph = helper.make_graph(
    nodes,
    "small",
    [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 2, 6, 6])],
    [
        helper.make_tensor_value_info("chances", TensorProto.FLOAT, ["n", 8]),
        helper.make_tensor_value_info("middle", TensorProto.FLOAT, ["n"]),
    ],
    constants,
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
onnx.checker.check_model(model)
net = convert(model)
print([type(layer).__name__ for layer in net.children()])
print(sorted((name, tuple(value.shape)) for name, value in net.state_dict().items()))
torch.manual_seed(0)
images = torch.randn(3, 2, 6, 6)
chances, middle = net.eval()(images)
print("eval", chances.tolist(), middle.tolist())
net.train()
descent = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
for _ in range(3):
    descent.zero_grad()
    loss = -net(images)[0][:, 2].log().mean()
    loss.backward()
    descent.step()
    print("loss", loss.item())
print("nodes", [node.op for node in net.graph.nodes].count("call_module"))
