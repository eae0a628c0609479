"""NVIDIA's libraries on the fake driver: the same C interface, what it means computed with NumPy.

They are strict where the libraries are: sizes of attributes, alignment, combinations that no
algorithm serves. What passes here has been described as the library's documentation asks.
"""
