"""Support vector machines that learn sample by sample."""

from mercer.machines.online.estimator import OnlineSVC

__all__ = ["OnlineSVC"]
