"""Passive-aggressive learning."""

from mercer.passive.estimator import PassiveAggressiveClassifier

__all__ = ["PassiveAggressiveClassifier"]
