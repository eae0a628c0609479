"""NVIDIA's libraries through ctypes: products, convolutions, linear algebra, Fourier transforms.

`finding.py` looks for their files, `foreign.py` calls them. `matrices.py` says how row-major arrays
are told to column-major libraries. On the fake driver the libraries of `stand_in/` serve, which
compute with NumPy what NVIDIA's would.
"""
