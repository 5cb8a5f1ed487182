"""The engine of a cluster: samples stay with workers, a driver solves working sets."""
