"""The compiled functions of `mercer.engines.cuda`, compiled for the processor.

The same text that NVRTC compiles for a card is compiled by g++ behind a small header,
`engines/cuda/emulation.h`, which has threads, barriers and exchanges between lanes.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mercer.engines.cuda.sources import FUNCTIONS, SOURCE, number

HEADER = Path(__file__).parent / "engines" / "cuda" / "emulation.h"
MOST_WARPS = number("MOST_WARPS")
#: None if there is a compiler, else why emulated functions cannot be had
MISSING = None if shutil.which("g++") else "g++ is not installed"


@functools.cache
def library(lanes: int, most_near: int) -> ctypes.CDLL:
    """Compile the text for warps of so many lanes.

    Problems with more than ``most_near`` variables do not fit into shared memory.
    """
    launchers = "\n".join(f"LAUNCHER({name})" for name in FUNCTIONS)
    text = f'#include "{HEADER}"\n{SOURCE}\n{launchers}\n'
    folder = Path(tempfile.mkdtemp(prefix="mercer-emulated-"))
    try:
        (folder / "module.cpp").write_text(text, encoding="utf-8")
        # Sums and products are not contracted, so that twins agree to the last bit.
        # Static variables of templates must not be those of another library.
        command = [
            "g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-ffp-contract=off",
            "-fno-gnu-unique", "-Wl,-Bsymbolic",
            f"-DWARP={lanes}", f"-DMOST_NEAR={most_near}",
            "-o", str(folder / "module.so"), str(folder / "module.cpp"),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, text=True)
        return ctypes.CDLL(str(folder / "module.so"))
    except subprocess.CalledProcessError as error:
        raise AssertionError(error.stderr) from error
    finally:
        shutil.rmtree(folder)


def functions(
    lanes: int = 4,
    threads: int | None = None,
    most_near: int = 16,
    seed: int = 0,
) -> dict[str, Callable[..., None]]:
    """Return all functions by name, to be called like their twins.

    Blocks of one row of threads get ``threads`` of them instead of what they are given,
    because every thread takes time. With ``seed`` > 0 threads run in random order.
    """
    module = library(lanes, most_near)
    return {
        name: functools.partial(_launch, module, name, lanes, threads, seed)
        for name in FUNCTIONS
    }


def _launch(
    module: ctypes.CDLL,
    name: str,
    lanes: int,
    threads: int | None,
    seed: int,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    *arguments: Any,
) -> None:
    if name.startswith("take_pair_steps") and threads is not None:
        block = (threads,)
    if name.startswith("find_extremes"):  # any number finds the same
        block = (min(block[0], MOST_WARPS * lanes),)
    codes, pointers = "", []
    for value in arguments:
        kind = f"{value.dtype.kind}{value.dtype.itemsize}"
        if isinstance(value, np.ndarray):
            assert value.flags.c_contiguous, f"{name}: an array is not contiguous"
            codes += kind + "* "
            pointers.append(np.array(value.ctypes.data, dtype=np.uintp))
        else:
            codes += kind + " "
            pointers.append(np.array(value))
    run = getattr(module, f"launch_{name}")
    run.restype = ctypes.c_char_p
    sizes = [(ctypes.c_uint * 3)(*(*shape, 1, 1, 1)[:3]) for shape in (grid, block)]
    table = (ctypes.c_void_p * len(pointers))(*(p.ctypes.data for p in pointers))
    wrong = run(codes.encode(), *sizes, seed, lanes, table)
    assert not wrong, f"{name}: {wrong.decode()}"
