"""What operators do under transforms of functions: tangents of forward mode."""
