"""Functions of single elements: arithmetic, comparison, rounding, powers, angles, complex."""
