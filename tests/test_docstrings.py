"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest

import mpc_lab

MODULES = [
    module.name
    for module in pkgutil.walk_packages(mpc_lab.__path__, "mpc_lab.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
