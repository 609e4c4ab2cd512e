"""Settings are dataclasses; the extension reads them as JSON: the class, then the values by name."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any

import numpy as np


def variant(name: str) -> str:
    """A name as the library's enums have it: `shared_torso` is `SharedTorso`."""
    return "".join(part.capitalize() for part in name.split("_"))


def plain(value: Any, name: str) -> Any:
    """A value that JSON can hold, whatever kind of number, path or array it is."""
    if hasattr(value, "_json"):
        return value._json()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return [plain(item, name) for item in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(item, name) for item in value]
    if hasattr(value, "__fspath__"):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} is {value}: expected a finite number")
    if value is None or isinstance(value, (bool, int, float, str, dict)):
        return value
    raise TypeError(f"{name} is a {type(value).__name__}: expected a number, a text or a list of them")


class Settings:
    """What the classes of settings share."""

    def _values(self) -> dict[str, Any]:
        """The values by the names that the extension has for them."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: plain(value, f"{type(self).__name__}.{name}") for name, value in named.items()}

    def _text(self) -> str:
        return json.dumps({type(self).__name__: self._values()}, allow_nan=False)
