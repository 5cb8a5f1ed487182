"""One graphics card: kernel values and solvers, on CuPy."""
