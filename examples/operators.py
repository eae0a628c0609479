"""Overloaded operators: arithmetic, comparison, logic, in-place forms; and slicing in loops.

Usage: `flambeau run examples/operators.py`
"""

import torch

x = torch.tensor([1.5, -2.0, 3.0])
y = torch.tensor([2.0, 3.0, -1.5])
print("arithmetic:", -x, x + y, x * y, x / y, x // y, x % y, abs(x) ** y, sep="\n ")
print("x @ y:", x @ y)
print("comparison:", x > y, x <= y, x == y, x != y, sep="\n ")

p = torch.tensor([True, True, False, False])
q = torch.tensor([True, False, True, False])
print("logic:", p & q, p | q, p ^ q, ~p, sep="\n ")
print("bitwise on integers:", (torch.tensor(5) ^ 3).item(), (~torch.tensor(5)).item())

alias = x
x += y  # in place: the alias sees it
x **= 2
print("in place:", alias)
try:
    print(x and y)
except RuntimeError as error:
    print("and, or, not cannot be overloaded:", error)

torch.manual_seed(0)
rows = torch.rand([500, 10])
total = torch.zeros(10)
for i in range(500):  # slow: 500 slices
    total += rows[i]
unbound = torch.zeros(10)
for row in torch.unbind(rows):  # better
    unbound += row
print("slices, unbind, sum agree:", torch.equal(total, unbound), torch.allclose(total, rows.sum(0)))
print("sum over the first dim (best):", rows.sum(0)[:3])
