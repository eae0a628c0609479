"""The two versions: flambeau's own, and the PyTorch whose API and behaviour it follows."""

__version__ = "0.1.0"

TORCH_API_VERSION = "2.13.0"

# What `torch.__version__` answers under the import hook: a PyTorch version, marked as ours.
TORCH_VERSION = f"{TORCH_API_VERSION}+flambeau"
