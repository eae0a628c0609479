"""Other shapes over the same memory, and writing into what a view shows."""
