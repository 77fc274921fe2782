"""A compiled scan, where numba is installed: made in the background once it is worth it. Until then, and without it,
numpy finds the same to the last bit."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from importlib import import_module

Kernel = Callable[..., int]
AFTER = 50
"""Searches of a large store in this process before anything is loaded: a few do not pay for it."""
DEEP = 256
"""Results up to which compiled code keeps them in order as it goes."""
log = logging.getLogger("evokey")
_loading = threading.Lock()
_asked = 0
_best: Kernel | None = None
_joined: Kernel | None = None


def best() -> Kernel | None:
    """The compiled scan, if it is there already."""
    global _asked
    if _best is None and _asked <= AFTER:
        _asked += 1
        if _asked == AFTER:
            # A daemon: a program ends without waiting for its compiler.
            threading.Thread(target=load, name="evokey-compile", daemon=True).start()
    return _best


def joined() -> Kernel | None:
    """What was taught among the rest, compiled, if that is there already."""
    return _joined


def load() -> bool:
    """Load it, compiling if need be, and say whether it is there."""
    global _best, _joined
    with _loading:
        if _best is None:
            try:
                kernel = import_module("evokey.scoring.kernel")
                _best, _joined = kernel.best, kernel.joined
            except ImportError:
                return False
            except Exception as error:  # noqa: BLE001 - whatever ails a compiler, numpy finds the same
                log.warning("searches continue without a compiled scan: %s", str(error))
        return _best is not None
