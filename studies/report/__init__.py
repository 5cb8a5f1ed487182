"""Running studies, storing their results, and the page that shows them."""

from studies.report.outcomes import Report, StudyReport
from studies.report.running import run_studies

__all__ = ["Report", "StudyReport", "run_studies"]
