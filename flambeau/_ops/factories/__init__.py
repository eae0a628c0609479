"""New tensors: filled, spaced, from other data, from files; the old constructors."""
