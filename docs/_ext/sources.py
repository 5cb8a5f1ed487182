"""Links from the reference to the code.

Sphinx looks for the code of a class in the module that the class names. Public classes
name their package, so this extension says where each of them is written.
"""

from importlib import import_module

from mercer.runtime.public import defined_in


def where_it_is_written(app, module, name):
    """Return the module that defines a public thing; None for anything else."""
    thing = import_module(module)
    for part in name.split("."):
        thing = getattr(thing, part, None)
    return defined_in(thing)


def setup(app):
    """Register the above beside Sphinx's extension."""
    app.setup_extension("sphinx.ext.viewcode")
    app.connect("viewcode-follow-imported", where_it_is_written)
    return {"parallel_read_safe": True}
