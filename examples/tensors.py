"""Tensors: making them, shapes, indexing, views that share memory, and NumPy.

Usage: `flambeau run examples/tensors.py`
"""

import torch


def make():
    torch.manual_seed(0)
    print(torch.tensor(3), torch.tensor([1, 2]), torch.zeros([2, 2]).dtype)
    uniform = torch.rand([2, 2, 2])
    print("rand:", uniform.shape, uniform[0, 0])
    product = torch.randn([3, 5]) @ torch.randn([5, 4])
    print("matmul:", product.shape, product[0])


def reshape():
    x = torch.arange(12)
    table = x.reshape(3, 4)
    print("stack:", torch.stack([x, x * x], 1).shape, " cat:", torch.cat([table, table], 1).shape)
    print("rows 1 and 2:", torch.equal(table[1:3], torch.narrow(table, 0, 1, 2)))
    print("row by row:", [row.sum().item() for row in torch.unbind(table)])
    print("picked:", x[torch.tensor([[0, 3], [6, 9]])])


def share():
    x = torch.zeros(2, 3)
    column = x[:, 1]  # a view: the same memory
    column += 5
    print("the base sees it:\n", x, sep="")
    array = x.numpy()  # the same memory again
    array[0, 0] = -1
    print("so does the tensor:", x[0, 0].item(), " a copy:", torch.tensor(array).dtype)
    print("strides:", x.stride(), x.t().stride(), torch.ones(3, 1).expand(3, 1000).stride())


if __name__ == "__main__":
    make()
    reshape()
    share()
