"""Formulas as MathML, which browsers draw themselves, without a network."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def formula(latex, display):
    """Return a formula as MathML; say which one could not be translated."""
    try:
        return convert(latex, display=display)
    except Exception as error:
        LOGGER.warning("cannot translate the formula %r: %s", latex, error)
        return ""


def visit_inline(translator, node):
    """Write a formula within a line."""
    translator.body.append(formula(node.astext(), "inline"))
    raise SkipNode


def visit_block(translator, node):
    """Write formulas on lines of their own; an empty line stands between two."""
    for part in node.astext().strip().split("\n\n"):
        drawn = formula(part, "block")
        translator.body.append(f'<div class="math">{drawn}</div>')
    raise SkipNode


def setup(app):
    """Register the translation for HTML pages."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(visit_inline, None),
        block_renderers=(visit_block, None),
    )
    return {"parallel_read_safe": True}
