"""What the methods of a trainer look at first."""

from __future__ import annotations

import errno
import os
from typing import Any

import numpy as np

from ._settings import MOST, Settings


def example(kind: type) -> str:
    return {"Environment": "Ring(4)", "Policy": "GraphNet()"}.get(kind.__name__, "TrajectoryBalance()")


def described(*parts: Any) -> list[Any]:
    """What a checkpoint says that a run is: it goes on with equal parts alone. Of a function nothing can be told but that it is one."""
    return [[type(part).__name__, part._described()] if isinstance(part, Settings) else "a function" for part in parts]


def there(path: str | os.PathLike[str]) -> str:
    """The path of a checkpoint that is there."""
    path = os.fsdecode(path)
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, "there is no checkpoint", path)
    return path


def count(n: int, name: str = "n", least: int = 0, most: int = MOST) -> int:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise TypeError(f"{name} is {n!r:.200}: expected a whole number of at least {least}")
    if not least <= n <= most:
        raise ValueError(f"{name} is {n}: expected a whole number from {least} to {most}")
    return int(n)
