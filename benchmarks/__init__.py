"""Mercer beside its peers: speed, memory, and how exact the answers are."""
