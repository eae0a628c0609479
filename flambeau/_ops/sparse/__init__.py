"""Sparse tensors in coordinate form: making them, and what dense rows ask when given one."""
