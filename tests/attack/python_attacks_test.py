"""Attacks on the Python package, with the defence and without it: T2."""
import importlib
import inspect
import pickle

import pytest


def without(name, defence, left):
    """A copy of the module in which the text `defence` reads `left`."""
    module = importlib.import_module(name)
    source = inspect.getsource(module)
    assert defence in source, "what was left out is not there"
    copy = type(module)(name)
    exec(compile(source.replace(defence, left), module.__file__, "exec"), copy.__dict__)
    return copy


class Payload:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("defended", [True, False])
def test_T2_an_object_of_another_rank_runs_code_here(tmp_path, defended):
    name = "fleetrun.distributed._objects"
    module = importlib.import_module(name) if defended else without(name, "if not allow_pickle:", "if False:")
    try:
        module.from_bytes(b"P" + pickle.dumps(Payload(tmp_path / "ran")), False)
    except Exception as error:
        assert "did not allow it" in str(error), error
    assert (tmp_path / "ran").exists() != defended
