"""What PyTorch removed with version 1.9, and names still: an error with the way out."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.op import composite

HEAD = "This function was deprecated since version 1.9 and is now removed."


@composite(
    "symeig(Tensor self, bool eigenvectors=False, bool upper=True) -> (Tensor, Tensor)", bare=True
)
def symeig(input: Any, eigenvectors: bool = False, upper: bool = True, *, out: Any = None) -> Any:
    """Removed: see `linalg.eigh` and `linalg.eigvalsh`.

    Raises RuntimeError, whatever the shapes.

    >>> import flambeau as torch
    >>> try:
    ...     torch.symeig(torch.eye(2))
    ... except RuntimeError:
    ...     print("use torch.linalg.eigh")
    use torch.linalg.eigh
    """
    raise RuntimeError(
        f"{HEAD} The default behavior has changed from using the upper triangular portion of the "
        "matrix by default to using the lower triangular portion.\n"
        "Use torch.linalg.eigvalsh(A, UPLO='U'), or torch.linalg.eigh for vectors, too."
    )


@composite("eig(Tensor self, bool eigenvectors=False) -> (Tensor, Tensor)", bare=True)
def eig(self: Any, eigenvectors: bool = False, *, e: Any = None, v: Any = None) -> Any:
    """Removed: see `linalg.eig` and `linalg.eigvals`.

    Raises RuntimeError, whatever the shapes.

    >>> import flambeau as torch
    >>> try:
    ...     torch.eig(torch.eye(2))
    ... except RuntimeError:
    ...     print("use torch.linalg.eig")
    use torch.linalg.eig
    """
    raise RuntimeError(
        f"{HEAD} `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather "
        "than real tensors mimicking complex tensors.\n"
        "Use torch.linalg.eigvals(A), or torch.linalg.eig for vectors, too."
    )


@composite("lstsq(Tensor self, Tensor A) -> (Tensor, Tensor)", bare=True)
def lstsq(input: Any, A: Any = None, *, other: Any = None, out: Any = None) -> Any:
    """Removed: see `linalg.lstsq`.

    Raises RuntimeError, whatever the shapes.

    >>> import flambeau as torch
    >>> try:
    ...     torch.lstsq(torch.ones(2, 1), torch.eye(2))
    ... except RuntimeError:
    ...     print("use torch.linalg.lstsq")
    use torch.linalg.lstsq
    """
    raise RuntimeError(
        f"{HEAD} `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n"
        "torch.linalg.lstsq(A, B).solution takes its arguments in the other order."
    )


@composite("solve(Tensor self, Tensor A) -> (Tensor, Tensor)", bare=True)
def solve(input: Any, A: Any = None, *, other: Any = None, out: Any = None) -> Any:
    """Removed: see `linalg.solve`.

    Raises RuntimeError, whatever the shapes.

    >>> import flambeau as torch
    >>> try:
    ...     torch.solve(torch.ones(2, 1), torch.eye(2))
    ... except RuntimeError:
    ...     print("use torch.linalg.solve")
    use torch.linalg.solve
    """
    raise RuntimeError(
        f"{HEAD} `torch.solve` is deprecated in favor of `torch.linalg.solve`. "
        "`torch.linalg.solve` has its arguments reversed and does not return the LU "
        "factorization.\n"
        "Factors: torch.linalg.lu_factor, with torch.linalg.lu_solve."
    )


@composite(
    "matrix_rank(Tensor self, float? tol=None, bool symmetric=False) -> Tensor",
    bare=True,
    method=False,
)
def matrix_rank(input: Any, tol: Any = None, symmetric: bool = False, *, out: Any = None) -> Any:
    """Removed: see `linalg.matrix_rank`.

    Raises RuntimeError, whatever the shapes.

    >>> import flambeau as torch
    >>> try:
    ...     torch.matrix_rank(torch.eye(2))
    ... except RuntimeError:
    ...     print("use torch.linalg.matrix_rank")
    use torch.linalg.matrix_rank
    """
    raise RuntimeError(
        f"{HEAD}\nUse torch.linalg.matrix_rank, whose `hermitian` is what was `symmetric`."
    )
