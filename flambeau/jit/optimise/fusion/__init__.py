"""Fusion: pointwise operators, normalisation and their gradients in few kernels.

| file | what it does |
|---|---|
| `groups.py` | picks the nodes of a graph that make a group, and puts a call in their place |
| `group.py` | the call: finds or makes a form for its arguments; falls back to the operators |
| `tracing.py` | runs the group once, forward and backward, and notes what it computes |
| `rules.py` | what each operator is as an expression |
| `lowering.py` | expressions into kernels: loops (`Fusion`) and row formulas |
| `forms.py` | what runs: kernels and operators in order, on numbered arrays |
| `node.py` | the group's node in the autograd graph |
"""
