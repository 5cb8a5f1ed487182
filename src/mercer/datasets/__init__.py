"""Data sets and exact splits: what the studies and the examples run on.

Loaders and toy sets return ``(X, y)``, or a Bunch with ``as_bunch=True``.
"""
