"""Benchmarks that compare the speed, memory and accuracy of Mercer and its peers."""
