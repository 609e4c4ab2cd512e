"""The line on a terminal that shows the progress of a training run."""

from __future__ import annotations

import sys
import time
from typing import Any


class Line:
    """A line on a terminal that shows the progress of a training run. Nothing is written unless `shown` is
    True."""

    def __init__(self, steps: int, shown: bool) -> None:
        self._steps, self._shown = steps, shown
        self._made, self._started, self._drawn = 0, time.perf_counter(), 0.0

    def steps_at_once(self) -> int:
        if not self._shown:
            return 1 << 30
        elapsed = time.perf_counter() - self._started
        return max(1, int(0.2 * self._made / elapsed)) if self._made and elapsed > 0 else 1

    def show(self, made: int, record: dict[str, Any]) -> None:
        self._made += made
        now = time.perf_counter()
        if not self._shown or (now - self._drawn < 0.1 and self._made < self._steps):
            return
        self._drawn = now
        rate = self._made / max(now - self._started, 1e-9)
        left = (self._steps - self._made) / rate
        text = (f"{self._made}/{self._steps}  {rate:.1f} it/s  loss {record['loss']:.4g}  log Z "
            f"{record['log_z']:.4g}  {left:.0f} s left")
        sys.stderr.write("\r" + text[:79].ljust(79))
        sys.stderr.flush()

    def close(self) -> None:
        if self._shown and self._made:
            sys.stderr.write("\n")
