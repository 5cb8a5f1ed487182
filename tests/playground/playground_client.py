"""A page without a browser: it talks to the server as the page does."""

import json
from contextlib import contextmanager

from starlette.testclient import TestClient

from mercer.playground.messages import unpack
from mercer.playground.server import make_app

ADDRESS = "http://127.0.0.1:8765"
OWN = {"host": "127.0.0.1:8765", "origin": ADDRESS}


class Page:
    """One open page."""

    def __init__(self, socket):
        self.socket = socket
        self.welcome = self.receive()

    def send(self, **message):
        self.socket.send_text(json.dumps(message))

    def receive(self):
        return unpack(self.socket.receive_bytes())

    def ask(self, **message):
        self.send(**message)
        return self.receive()

    def refused(self, **message):
        """Return the text of the refusal that a request must meet."""
        values = self.ask(**message).values
        assert values["type"] == "error", values
        return values["message"]


@contextmanager
def served(playground):
    """Serve the application inside this process."""
    app = make_app(playground, prepare=False)
    with TestClient(app, base_url=ADDRESS) as client:
        yield client


@contextmanager
def opened(client):
    with client.websocket_connect("/talk", headers=OWN) as socket:
        yield Page(socket)


def as_fields(X, label):
    """Return points as a request has them."""
    return {
        "x": [round(float(v), 3) for v in X[:, 0]],
        "y": [round(float(v), 3) for v in X[:, 1]],
        "label": [int(v) for v in label],
    }
