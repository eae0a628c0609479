"""The operators that TorchScript programs may call: their schemas, choice and implementations."""
