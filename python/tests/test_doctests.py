"""Tests that public names have docstrings with examples, that the examples have the results that they show,
and that every setting of a class is described."""

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re

import gfn_rs as gfn
import numpy as np
import pytest
import torch

MODULES = [
    "gfn_rs",
    *(f"gfn_rs.{module.name}" for module in pkgutil.iter_modules(gfn.__path__) if module.name != "_gfn"),
]
# The names that examples use without importing them.
NAMES = {"gfn": gfn, "np": np, "torch": torch}
PUBLIC = {name: value for name in gfn.__all__ if callable(value := getattr(gfn, name))}


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_docstrings_hold(module):
    flags = doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(importlib.import_module(module), extraglobs=NAMES, optionflags=flags).failed == 0


@pytest.mark.parametrize("name", ["GraphBatch", "Graphs", "Scores", "set_threads"])
def test_examples_of_the_extension_hold(name):
    test = doctest.DocTestParser().get_doctest(PUBLIC[name].__doc__, NAMES, name, None, None)
    assert doctest.DocTestRunner().run(test).failed == 0 < len(test.examples)


def test_every_public_name_has_an_example():
    missing = [name for name, value in PUBLIC.items() if ">>> " not in (value.__doc__ or "")]
    assert len(PUBLIC) > 150 and missing == []


def test_every_public_member_has_a_docstring():
    missing = [
        f"{name}.{member}"
        for name, value in PUBLIC.items()
        if inspect.isclass(value)
        for member, found in vars(value).items()
        if not member.startswith("_")
        and (callable(found) or isinstance(found, (property, staticmethod, classmethod)))
        and not inspect.getdoc(getattr(value, member))
    ]
    assert missing == []


def test_every_setting_is_described():
    missing = [
        f"{name}.{field.name}"
        for name, value in PUBLIC.items()
        if dataclasses.is_dataclass(value) and not issubclass(value, gfn._results._Result)
        for field in dataclasses.fields(value)
        if not has_description(value.__doc__, field.name) and not has_text_below(value, field.name)
    ]
    assert missing == []


def has_description(text, field):
    """Returns True if a docstring has the field in a line of names, or as a word between backticks."""
    line = rf"^\s+([\w, ]*\b)?{field}\b[\w, ]*$"
    code = " ".join(re.findall("`([^`]+)`", text))
    return re.search(line, text, re.MULTILINE) is not None or re.search(rf"\b{field}\b", code) is not None


def test_a_name_within_another_name_is_no_description():
    assert not has_description("\n    initial_log_z\n        The initial value.\n", "log_z")
    assert has_description("\n    initial_log_z, log_z\n        Two values.\n", "log_z")


def has_text_below(kind, field):
    """Returns True if a text follows the field in the source of the class."""
    return re.search(rf'^    {field}: .*\n    """', inspect.getsource(kind), re.MULTILINE) is not None
