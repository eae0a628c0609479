"""Tiles and dots: instructions that multiply groups of numbers, each with a second form in loops.

`dots`: one vector of sums gets the products of groups that lie in two other vectors. `amx`: tiles
of 16 rows of 64 bytes, and products of whole tiles. What is `LOOPS` is written out in instructions
that every processor has, and rounds as the instruction does: bit for bit the same numbers.
"""
