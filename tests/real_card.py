"""The graphics card of this machine, for tests with the marker `gpu`."""

import pytest

from mercer.engines.cuda.card import open_card


def real_card():
    """Return the first card; skip the test where there is none."""
    try:
        return open_card(0)
    except (ImportError, OSError) as error:
        pytest.skip(str(error).partition(":")[0])
