"""The two versions: flambeau's own, and the PyTorch whose API and behaviour it follows."""

__version__ = "0.1.0"

TORCH_API_VERSION = "2.13.0"

# What `flambeau.__version__` answers, being `torch.__version__` too: a PyTorch version, marked.
TORCH_VERSION = f"{TORCH_API_VERSION}+flambeau"
