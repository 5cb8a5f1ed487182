"""One open page: its requests, the work on them, and what it remembers.

Requests come faster than fits: a drag asks for a picture with every movement. So each
kind of request has one place to wait in, in which the newest replaces an older one, and
work that a newer request makes stale is stopped. Work runs in a thread, one piece after
the other, so that the server stays free for other pages.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mercer.playground import messages
from mercer.playground.code import python_code
from mercer.playground.digits import DigitReader
from mercer.playground.messages import Answer, Refusal
from mercer.playground.plane import PlaneRequest, draw_plane
from mercer.playground.solvers import SolverRace, snapshot, start_race
from mercer.playground.stream import Stream
from mercer.playground.toys import draw_toy
from mercer.runtime.progress import StopButton

__all__ = ["Session"]

log = logging.getLogger("mercer")

# Requests a second that are answered on the whole, and in a burst.
RATE, BURST = 120.0, 240.0
# A page that goes on sending after so many refused requests is disconnected.
MOST_REFUSED = 500
# While the user drags, work that has just begun is finished even if a newer request is
# there: otherwise a slow machine would never show anything.
GRACE = 0.3


class TooMany(Exception):
    """The page sends more than it may, and goes on doing so."""


class Session:
    """What belongs to one open page."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], reader: DigitReader):
        self._send = send
        self._reader = reader
        self._waiting: dict[str, dict[str, Any]] = {}
        self._there_is_work = asyncio.Event()
        self._running: tuple[str, StopButton, float] | None = None
        self._allowance, self._last = BURST, time.monotonic()
        self._n_refused = 0
        self._race: SolverRace | None = None
        self._stream: Stream | None = None
        self._worker = asyncio.create_task(self._work())

    async def take(self, raw: str) -> None:
        """Take a request; one that is refused is answered at once."""
        number = None
        try:
            self._count()
            message = messages.parse(raw)
            number = messages.whole(message, "id", 0, 2**53, 0)
            kind = messages.choice(message, "type", tuple(self._ANSWERS), "")
            self._accept(kind, message)
        except Refusal as refusal:
            self._n_refused += 1
            if self._n_refused > MOST_REFUSED:
                raise TooMany from refusal
            await self._refuse(number, None, refusal)

    def _count(self) -> None:
        """Refuse a request if too many have come."""
        now = time.monotonic()
        self._allowance = min(BURST, self._allowance + RATE * (now - self._last))
        self._last = now
        if self._allowance < 1.0:
            raise Refusal(f"Too many messages: at most {RATE:g} a second are read.")
        self._allowance -= 1.0

    def _accept(self, kind: str, message: dict[str, Any]) -> None:
        """Let a request wait for its turn; the newest of a kind replaces the others."""
        self._waiting.pop(kind, None)
        self._waiting[kind] = message
        self._there_is_work.set()
        if self._running is not None and self._running[0] == kind:
            _, stop, started = self._running
            age = time.monotonic() - started
            if not message.get("gesture") or age > GRACE:
                stop.press()

    async def _work(self) -> None:
        """Answer requests, one after the other, as long as the page is open."""
        while True:
            await self._there_is_work.wait()
            kind = next(iter(self._waiting))
            message = self._waiting.pop(kind)
            if not self._waiting:
                self._there_is_work.clear()
            number = message.get("id", 0)
            stop = StopButton()
            self._running = (kind, stop, time.monotonic())
            try:
                answer = await asyncio.to_thread(
                    self._ANSWERS[kind], self, message, stop
                )
                if not stop.is_pressed:
                    answer.values["id"] = number
                    await self._send(messages.pack(answer))
            except Refusal as refusal:
                if not stop.is_pressed:
                    await self._refuse(number, kind, refusal)
            except asyncio.CancelledError:
                stop.press()
                raise
            except Exception as error:
                # The page goes on, whatever a machine says to strange data.
                if not stop.is_pressed:
                    log.debug("A request of the page failed.", exc_info=True)
                    told = Refusal(str(error) or type(error).__name__)
                    await self._refuse(number, kind, told)
            finally:
                self._running = None

    async def _refuse(self, number: Any, kind: str | None, refusal: Refusal) -> None:
        values = {
            "type": "error",
            "id": number,
            "kind": kind,
            "field": refusal.field,
            "message": str(refusal),
        }
        await self._send(messages.pack(Answer(values)))

    @property
    def is_busy(self) -> bool:
        """Whether work is going on."""
        return self._running is not None

    async def close(self) -> None:
        """Stop the work, and forget what belongs to the page."""
        if self._running is not None:
            self._running[1].press()
        self._waiting.clear()
        self._worker.cancel()
        await asyncio.gather(self._worker, return_exceptions=True)
        self._race = self._stream = None

    def _plane(self, message: Mapping[str, Any], stop: StopButton) -> Answer:
        return draw_plane(PlaneRequest.of(message), stop)

    def _toy(self, message: Mapping[str, Any], stop: StopButton) -> Answer:
        return draw_toy(message)

    def _solvers(self, message: Mapping[str, Any], stop: StopButton) -> Answer:
        self._race = start_race(message, stop)
        return self._race.summary()

    def _snapshot(self, message: Mapping[str, Any], stop: StopButton) -> Answer:
        if self._race is None:
            raise Refusal("There is nothing to step through yet.", "solvers")
        return snapshot(self._race, message)

    def _start_stream(self, message: Mapping[str, Any], stop: StopButton) -> Answer:
        self._stream = Stream(message)
        return Answer({"type": "stream-started"})

    def _step_stream(self, message: Mapping[str, Any], stop: StopButton) -> Answer:
        if self._stream is None:
            raise Refusal("Start the stream first.", "stream")
        return self._stream.step(message, stop)

    def _digit(self, message: Mapping[str, Any], stop: StopButton) -> Answer:
        return self._reader.read(message)

    def _digits_state(self, message: Mapping[str, Any], stop: StopButton) -> Answer:
        # The page asks again and again until the machine is trained.
        self._reader.wait(0.5)
        return Answer(self._reader.state())

    def _code(self, message: Mapping[str, Any], stop: StopButton) -> Answer:
        return python_code(message)

    _ANSWERS: dict[str, Callable[..., Answer]] = {  # noqa: RUF012
        "plane": _plane,
        "toy": _toy,
        "solvers": _solvers,
        "snapshot": _snapshot,
        "stream-start": _start_stream,
        "stream-step": _step_stream,
        "digit": _digit,
        "digits-state": _digits_state,
        "code": _code,
    }
