"""How functions are called: every way of giving arguments, here and in PyTorch."""
