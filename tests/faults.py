"""Errors that strike at a chosen moment, as Ctrl-C and a lack of memory do."""

import sys
from pathlib import Path

import mercer

ROOT = Path(mercer.__file__).parent


class Fault:
    """Raises an error at the k-th instruction that some modules execute.

    ``places`` are files or folders of the package.  A fault that is never due counts
    the instructions.
    """

    def __init__(self, error, places, due=None):
        self._error = error
        self._places = tuple(str(ROOT / place) for place in places)
        self._due = due
        self.count = 0

    def __enter__(self):
        self._before = sys.gettrace()
        # Python 3.12 reports instructions only if a frame wants them from the start.
        sys._getframe().f_trace_opcodes = True
        sys.settrace(self._enter)
        return self

    def __exit__(self, kind, error, trace):
        sys.settrace(self._before)
        return kind is self._error

    def _enter(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(self._places):
            return None
        frame.f_trace_opcodes = True
        return self._step

    def _step(self, frame, event, argument):
        if event == "opcode":
            self.count += 1
            if self.count == self._due:
                raise self._error
        return self._step


def moments(call, places, how_many, first=0):
    """Yield so many moments, evenly spread over the instructions of a call."""
    with Fault(KeyboardInterrupt, places) as fault:
        call()
    step = max(1, fault.count // how_many)
    yield from range(1 + first % step, fault.count + 1, step)
