"""Operators on sparse tensors in coordinate form, made of rows on their entries.

`table` is what dense operators ask when they are given a sparse tensor.
"""
