"""Special functions: error, gamma, Bessel and Airy functions, orthogonal polynomials."""
