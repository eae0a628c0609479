"""What launchers of several families share: plans of loops, types, windows, memory formats."""
