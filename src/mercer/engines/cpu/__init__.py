"""The engine of processor threads: tiles of kernel values, and solvers on them."""
