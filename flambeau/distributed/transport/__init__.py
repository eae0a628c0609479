"""How bytes get from one process to another: memory that they share, sockets, MPI, or nothing."""
