"""Tests that the examples in docstrings have the results that the docstrings show."""

import doctest
import importlib
import pkgutil

import gfn_rs
import pytest

NAMES = [
    "gfn_rs",
    *(f"gfn_rs.{module.name}" for module in pkgutil.iter_modules(gfn_rs.__path__) if module.name != "_gfn"),
]


@pytest.mark.parametrize("name", NAMES)
def test_examples_of_docstrings_hold(name):
    assert (
        doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
    )


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    assert (
        sum(len(test.examples) for name in NAMES for test in finder.find(importlib.import_module(name))) > 40
    )
