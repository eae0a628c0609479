"""Systems, factors, eigenvalues, functions of matrices."""
