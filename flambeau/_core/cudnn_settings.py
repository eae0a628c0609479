"""What `torch.backends.cudnn` was told, for those whom it concerns."""

from __future__ import annotations


class Cudnn:
    """Whether cuDNN is used, and how its engines are chosen."""

    enabled = True
    benchmark = False
    benchmark_limit: int | None = None
    deterministic = False

    ENGINES_MEASURED = 10
    """How many engines `benchmark` measures where no limit is set."""

    @classmethod
    def limit(cls) -> int:
        """How many engines are measured; 1 means none: the first one proposed is taken."""
        if not cls.benchmark:
            return 1
        wanted = cls.ENGINES_MEASURED if cls.benchmark_limit is None else cls.benchmark_limit
        return wanted if wanted > 0 else 1 << 30
