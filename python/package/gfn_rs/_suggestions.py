"""Errors for misspelt settings, which suggest the intended setting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def refuse_unknown(owner: str, parameters: Mapping[str, Parameter], settings: Iterable[str]) -> None:
    """Raises an error for settings that a class or function doesn't have.

    The error names the setting with the closest spelling, or another class that has a setting of this name.
    """
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name in settings:
        if name not in parameters:
            raise TypeError(f"{owner} has no setting `{name}`: {_suggestion(name, parameters)}")


def _suggestion(name: str, parameters: Mapping[str, Parameter]) -> str:
    for parameter in parameters.values():
        part = parameter.default
        if is_dataclass(part) and any(field.name == name for field in fields(part)):
            return (
                f"it is one of `{parameter.name}`, {parameter.name}={type(part).__name__}({name}=...)"
            )
    names = [known for known in parameters if known != "self"]
    return suggest(name, names) if names else "it has no settings, leave it out"


def suggest(name: str, names: Sequence[str]) -> str:
    """Returns the end of an error message about an unknown name: the known name with the closest spelling,
    or all known names."""
    matches = get_close_matches(name, names, 1)
    return f"did you mean `{matches[0]}`?" if matches else f"expected one of {', '.join(names)}"


def suggests_names(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator of a function or constructor. If the function is called with a setting that it doesn't
    have, the error suggests the intended setting."""
    parameters = signature(function).parameters
    owner = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*args: P.args, **settings: P.kwargs) -> R:
        refuse_unknown(owner, parameters, settings)
        return function(*args, **settings)

    return checked


class ConstructorSignature:
    """A descriptor for the signature of a class whose `__new__` accepts any arguments. Its value is the
    signature of the class's `__init__`."""

    def __get__(self, instance: Any, owner: type) -> Signature:
        _, *parameters = signature(owner.__init__).parameters.values()  # type: ignore[misc]
        return Signature(parameters)
