"""Docstrings that share entries, and constructors that store their arguments."""

import inspect

import pytest

import mercer
from mercer.runtime.docstrings import fill_entries
from mercer.runtime.validation import stores_parameters, stores_parameters_of


class Model:
    """A model.

    Parameters
    ----------
    a, b : int, default=1
        Two numbers.

        They are whole.
    c : int, default=2
    d : str
        A text.
    """


# Python 3.13 and later do so themselves.
Model.__doc__ = inspect.cleandoc(Model.__doc__)


def test_entries_of_a_base_class_are_filled_in():
    class Machine(Model):
        """A machine.

        Parameters
        ----------
        d, c : as in :class:`Model`
        """

    Machine.__doc__ = inspect.cleandoc(Machine.__doc__)
    fill_entries(Machine)
    assert Machine.__doc__.endswith("d : str\n    A text.\nc : int, default=2")


def test_entries_of_another_class_need_it_as_a_model():
    class Machine:
        pass

    Machine.__doc__ = "b : as in :class:`~mercer.Model`"
    fill_entries(Machine)
    assert Machine.__doc__ == "b : as in :class:`~mercer.Model`"
    fill_entries(Machine, [Model])
    assert Machine.__doc__.endswith("    Two numbers.\n\n    They are whole.")


def test_an_entry_that_is_missing_is_an_error():
    class Machine:
        pass

    Machine.__doc__ = "e : as in :class:`Model`"
    with pytest.raises(LookupError, match="No entry explains e"):
        fill_entries(Machine, [Model])


def test_without_docstrings_nothing_is_filled_in():
    class Machine:
        pass

    fill_entries(Machine, [Model])
    assert Machine.__doc__ is None


@pytest.mark.parametrize("name", ["NuSVC", "NuSVR", "OneClassSVM", "SVDD"])
def test_machines_show_what_they_share(name):
    text = getattr(mercer, name).__doc__
    assert (
        "Number of threads; -1 means all cores, None as many as BLAS may use." in text
    )
    assert "n_jobs : as in" not in text


def test_arguments_are_stored_as_the_signature_says():
    class Machine:
        @stores_parameters
        def __init__(self, a, b=2, *, c=3): ...

    assert vars(Machine(1)) == {"a": 1, "b": 2, "c": 3}
    assert vars(Machine(1, 5, c=6)) == {"a": 1, "b": 5, "c": 6}
    assert str(inspect.signature(Machine)) == "(a, b=2, *, c=3)"
    for wrong in ({}, {"a": 1, "d": 4}):
        with pytest.raises(TypeError, match="__init__"):
            Machine(**wrong)
    with pytest.raises(TypeError, match="positional"):
        Machine(1, 2, 3)


def test_arguments_of_another_class_are_stored_too():
    class Machine:
        @stores_parameters
        def __init__(self, a, b=2, *, c=3): ...

    class Other(Machine):
        @stores_parameters_of(Machine, "c")
        def __init__(self, *, d=4): ...

    assert vars(Other(1)) == {"a": 1, "b": 2, "d": 4}
    assert vars(Other(1, 5, d=6)) == {"a": 1, "b": 5, "d": 6}
    assert str(inspect.signature(Other)) == "(a, b=2, *, d=4)"
    for wrong in ({}, {"a": 1, "c": 4}):
        with pytest.raises(TypeError, match=r"Other.__init__\(\): "):
            Other(**wrong)
    with pytest.raises(TypeError, match="positional"):
        Other(1, 2, 3)
