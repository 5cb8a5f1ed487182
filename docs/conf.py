"""How Sphinx builds these pages: ``make docs``."""

import sys
from pathlib import Path

import mercer

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Mercer"
author = "The Mercer developers"
version = release = mercer.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "fragments",
    "mathml",
    "names",
    "sources",
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
templates_path = ["_templates"]
exclude_patterns = ["_build", "_ext", "_templates", "_generated/backreferences"]
html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["formulas.css", "gallery.css"]
html_title = f"Mercer {version}"
html_show_copyright = False
# Every reference within Mercer must lead somewhere. Types of parameters are words for
# people, such as "array of shape (n,)", which Sphinx takes for names of classes.
nitpicky = True
nitpick_ignore_regex = [("py:class", r"(?!mercer\.).*")]
# Docstrings of base classes refer to labels of scikit-learn's own pages.
suppress_warnings = ["ref.ref", "ref.term", "config.cache"]

SECTIONS = [
    "parameters",
    "classification",
    "regression",
    "kernels",
    "streams",
    "components",
    "selection",
    "images",
    "practice",
]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "/plot_",
    "subsection_order": [f"../examples/{section}" for section in SECTIONS],
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "_generated/backreferences",
    "doc_module": ("mercer",),
    "reference_url": {"mercer": None},
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 60,
}


def leave_out_what_others_describe(app, what, name, member, skip, options):
    """Leave out what comes from scikit-learn's base classes; its own pages have it."""
    module = getattr(member, "__module__", None) or ""
    is_request = name.startswith("set_") and name.endswith("_request")
    return True if module.startswith("sklearn") or is_request else None


def setup(app):
    """Register the above."""
    app.connect("autodoc-skip-member", leave_out_what_others_describe)
