"""`x[...]`, gather and scatter, writes by index, embeddings."""
