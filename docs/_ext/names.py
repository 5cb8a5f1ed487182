"""Public names between backquotes become links to the reference.

A page writes `SVC` or `mercer.save`, in a sentence or in a table, and the reader can
follow it. Headings stay plain, and so do names within other links.
"""

import inspect
from importlib import import_module

from docutils import nodes
from sphinx.addnodes import pending_xref

# Where two packages have a class of the same name, the first one is meant.
PACKAGES = [
    "mercer",
    "mercer.kernels",
    "mercer.images",
    "mercer.datasets",
    "mercer.selection",
    "mercer.plots",
    "mercer.dask",
]


def public_names():
    """Return the full name of everything public, by each name that pages use."""
    found = {}
    for package in PACKAGES:
        for name in import_module(package).__all__:
            thing = getattr(import_module(package), name)
            if inspect.ismodule(thing) or thing.__module__.startswith("sklearn"):
                continue
            full = f"{package}.{name}"
            inside = full.removeprefix("mercer.")
            # Words such as "save" alone may mean something else.
            if inspect.isclass(thing) or "_" in name:
                found.setdefault(name, full)
            if "." in inside:
                found.setdefault(inside, full)
            found[full] = full
    return found


def link_names(app, doctree):
    """Replace literals that are public names by references."""
    if app.env.docname.startswith("_generated"):
        return
    for literal in list(doctree.findall(nodes.literal)):
        # A call such as `SVC(C=10)` leads to its class.
        full = app.public_names.get(literal.astext().partition("(")[0])
        parents = [literal.parent]
        while parents[-1] is not None:
            parents.append(parents[-1].parent)
        inside = (nodes.title, nodes.reference, pending_xref)
        if full is None or any(isinstance(parent, inside) for parent in parents):
            continue
        link = pending_xref(
            refdomain="py",
            reftype="obj",
            reftarget=full,
            refdoc=app.env.docname,
            refexplicit=True,
            refwarn=True,
        )
        literal.replace_self(link)
        link += literal


def setup(app):
    """Collect the names, and link them in every page that is read."""
    app.public_names = public_names()
    app.connect("doctree-read", link_names)
    return {"parallel_read_safe": True}
