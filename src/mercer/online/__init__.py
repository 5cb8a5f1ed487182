"""Support vector machines that learn sample by sample."""

from mercer.online.estimator import OnlineSVC

__all__ = ["OnlineSVC"]
