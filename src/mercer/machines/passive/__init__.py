"""Passive-aggressive learning."""

from mercer.machines.passive.estimator import PassiveAggressiveClassifier

__all__ = ["PassiveAggressiveClassifier"]
