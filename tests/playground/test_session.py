"""Sessions: the newest request wins, stale work stops, nothing hostile gets through."""

import asyncio
import json
import threading
import time

import numpy as np
import pytest

from mercer.playground import session as session_module
from mercer.playground.messages import Answer, unpack
from mercer.playground.session import MOST_REFUSED, Session, TooMany

HOSTILE = [
    "",
    "nonsense",
    "[]",
    '{"type": "no such thing"}',
    '{"type": ["plane"]}',
    '{"type": "plane", "id": "x"}',
    '{"type": "plane", "x": {"a": 1}}',
    '{"type": "plane", "x": [1], "y": [1], "label": [99]}',
    '{"type": "plane", "kernel": 3}',
    '{"type": "plane", "machine": "__import__"}',
    '{"type": "snapshot"}',
    '{"type": "stream-step"}',
    '{"type": "stream-start", "budget": -1}',
    '{"type": "digit", "pixels": "everything"}',
    '{"type": "toy", "n": 1e308}',
    '{"type": "solvers"}',
    '{"type": "code", "part": "../../etc/passwd"}',
    '{"type": "plane", "x": [' + "[" * 5000 + "]" * 5000 + "]}",
]


class Talk:
    """A session whose answers are kept."""

    def __init__(self):
        self.answers = []
        self.session = Session(self._send, None)

    async def _send(self, data):
        self.answers.append(unpack(data).values)

    async def ask(self, **message):
        await self.session.take(json.dumps(message))

    async def answered(self, count, seconds=20):
        until = time.monotonic() + seconds
        while len(self.answers) < count and time.monotonic() < until:
            await asyncio.sleep(0.005)
        assert len(self.answers) >= count, self.answers
        return self.answers


def conduct(story, monkeypatch=None, work=None):
    """Run a story with a session whose pictures are made by ``work``."""
    if work is not None:
        monkeypatch.setitem(Session._ANSWERS, "plane", work)

    async def run():
        talk = Talk()
        try:
            return await story(talk)
        finally:
            await talk.session.close()

    return asyncio.run(run())


def test_hostile_messages_are_refused_and_the_session_lives_on():
    async def story(talk):
        for k, raw in enumerate(HOSTILE):
            await talk.session.take(raw)
            await talk.answered(k + 1)
        assert {answer["type"] for answer in talk.answers} == {"error"}
        assert all(len(answer["message"]) < 400 for answer in talk.answers)
        await talk.ask(type="toy", n=10, id=7)
        await talk.answered(len(HOSTILE) + 1)
        assert talk.answers[-1]["type"] == "toy" and talk.answers[-1]["id"] == 7

    conduct(story)


def test_the_newest_request_wins(monkeypatch):
    begun, go_on = threading.Event(), threading.Event()
    done = []

    def work(self, message, stop):
        done.append(message["id"])
        if message["id"] == 1:
            begun.set()
            go_on.wait(10)
        return Answer({"type": "plane"})

    async def story(talk):
        await talk.ask(type="plane", id=1, gesture=True)
        await asyncio.to_thread(begun.wait, 10)
        for number in range(2, 20):
            await talk.ask(type="plane", id=number, gesture=True)
        go_on.set()
        await talk.answered(2)
        await asyncio.sleep(0.05)
        # Work that has just begun is finished while the user drags.
        assert [answer["id"] for answer in talk.answers] == [1, 19]
        assert done == [1, 19]

    conduct(story, monkeypatch, work)


@pytest.mark.parametrize("gesture", [False, True])
def test_stale_work_is_stopped(monkeypatch, gesture):
    monkeypatch.setattr(session_module, "GRACE", 0.05)
    begun, stopped = threading.Event(), []

    def work(self, message, stop):
        begun.set()
        until = time.monotonic() + 10
        while message["id"] == 1 and not stop.is_pressed and time.monotonic() < until:
            time.sleep(0.005)
        stopped.append(stop.is_pressed)
        return Answer({"type": "plane"})

    async def story(talk):
        await talk.ask(type="plane", id=1)
        await asyncio.to_thread(begun.wait, 10)
        await asyncio.sleep(0.1)
        await talk.ask(type="plane", id=2, gesture=gesture)
        await talk.answered(1)
        # The stale answer is not sent.
        assert [answer["id"] for answer in talk.answers] == [2]
        assert stopped == [True, False]

    conduct(story, monkeypatch, work)


def test_a_long_fit_is_really_stopped(rng):
    # Labels at random and a large C take the solver very many steps.
    n = 1500
    hard = {
        "x": np.round(rng.normal(size=n), 3).tolist(),
        "y": np.round(rng.normal(size=n), 3).tolist(),
        "label": rng.integers(0, 2, n).tolist(),
        "C": 1e5,
        "kernel": "poly",
        "degree": 6,
    }

    async def story(talk):
        started = time.monotonic()
        await talk.ask(type="plane", id=1, **hard)
        while not talk.session.is_busy:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.6)
        assert talk.session.is_busy, "the problem is not hard enough for this test"
        await talk.ask(type="plane", id=2, x=[0, 1, 2], y=[0, 1, 0], label=[0, 1, 1])
        await talk.answered(1)
        assert talk.answers[0]["id"] == 2
        assert time.monotonic() - started < 15

    conduct(story)


def test_closing_frees_the_work(monkeypatch):
    begun, ended = threading.Event(), threading.Event()

    def work(self, message, stop):
        begun.set()
        until = time.monotonic() + 10
        while not stop.is_pressed and time.monotonic() < until:
            time.sleep(0.005)
        ended.set()
        return Answer({"type": "plane"})

    async def story(talk):
        await talk.ask(type="plane", id=1)
        await talk.ask(type="toy", id=2)
        await asyncio.to_thread(begun.wait, 10)
        await talk.session.close()
        assert await asyncio.to_thread(ended.wait, 2)
        assert not talk.session.is_busy
        assert talk.answers == []

    conduct(story, monkeypatch, work)


def test_rates_are_bounded():
    async def story(talk):
        for number in range(400):
            await talk.ask(type="toy", id=number, n=10)
        await asyncio.sleep(0.2)
        refused = [a for a in talk.answers if a["type"] == "error"]
        assert len(refused) >= 100
        assert "Too many messages" in refused[0]["message"]
        await asyncio.sleep(0.3)
        talk.answers.clear()
        await talk.ask(type="toy", id=1000, n=10)
        await talk.answered(1)
        assert talk.answers[-1]["type"] == "toy"

    conduct(story)


def test_a_page_that_does_not_stop_is_disconnected():
    async def story(talk):
        with pytest.raises(TooMany):
            for _ in range(MOST_REFUSED + 1):
                await talk.session.take("nonsense")

    conduct(story)


def test_an_error_of_a_machine_is_told(monkeypatch):
    def work(self, message, stop):
        raise ZeroDivisionError("something odd")

    async def story(talk):
        await talk.ask(type="plane", id=5)
        (answer,) = await talk.answered(1)
        assert answer["type"] == "error" and answer["id"] == 5
        assert "something odd" in answer["message"]

    conduct(story, monkeypatch, work)
