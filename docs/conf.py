"""How Sphinx builds these pages: ``make docs``."""

import sys
from pathlib import Path

import mercer

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Mercer"
author = "The Mercer authors"
version = release = mercer.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "sphinx.ext.napoleon",
]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]
autodoc_default_options = {"members": True, "inherited-members": True}
autodoc_typehints = "none"
autosummary_generate = True
exclude_patterns = ["_build", "_ext"]
html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["formulas.css"]
html_title = f"Mercer {version}"
# Docstrings of base classes refer to labels of scikit-learn's own pages.
suppress_warnings = ["ref.ref", "ref.term"]


def leave_out_what_others_describe(app, what, name, member, skip, options):
    """Leave out what comes from scikit-learn's base classes; its own pages have it."""
    module = getattr(member, "__module__", None) or ""
    is_request = name.startswith("set_") and name.endswith("_request")
    return True if module.startswith("sklearn") or is_request else None


def setup(app):
    """Register the above."""
    app.connect("autodoc-skip-member", leave_out_what_others_describe)
