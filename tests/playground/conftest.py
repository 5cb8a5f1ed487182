import numpy as np
import pytest

pytest.importorskip("starlette", reason="the playground needs mercer[play]")
pytest.importorskip("uvicorn", reason="the playground needs mercer[play]")

from playground_client import opened, served

from mercer.playground.digits import SIDE, DigitReader, check_digit_model
from mercer.playground.server import Playground


@pytest.fixture(scope="session")
def bars():
    """Images of a vertical and of a horizontal bar, and which of them each is."""
    rng = np.random.default_rng(0)
    images = np.zeros((40, SIDE, SIDE), dtype=np.uint8)
    label = np.arange(40) % 2
    for image, kind in zip(images, label, strict=True):
        at = rng.integers(10, 17)
        if kind:
            image[at : at + 3, 4:24] = 255
        else:
            image[4:24, at : at + 3] = 255
    return images.reshape(40, -1), np.array(["upright", "lying"])[label]


@pytest.fixture(scope="session")
def bar_reader(bars):
    """A reader of images that is trained at once."""
    from mercer import SVC

    model = SVC(gamma=1e-7, probability=True, random_state=0).fit(*bars)
    return DigitReader(check_digit_model(model, "bars.skops"))


@pytest.fixture
def playground(bar_reader):
    return Playground(bar_reader)


@pytest.fixture
def client(playground):
    with served(playground) as client:
        yield client


@pytest.fixture
def page(client):
    with opened(client) as page:
        yield page
