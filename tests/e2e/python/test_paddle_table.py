"""Each public name of Paddle is what paddle_names.txt says: here, or refused with its reason."""

import json


def test_each_name_is_what_the_table_says(run, package):
    done = run("""
import importlib
import json
import paddle
from fleetrun import _decisions
from fleetrun._unusable import Unusable

reasons, names = _decisions.table()
classes = {
    "paddle.Tensor": paddle.to_tensor([1.0]),
    "paddle.nn.Layer": paddle.nn.Linear(2, 3),
    "paddle.optimizer.Optimizer": paddle.optimizer.SGD(0.1),
    "paddle.incubate.distributed.fleet.fleet_util.FleetUtil":
        importlib.import_module("paddle.incubate.distributed.fleet.fleet_util").FleetUtil(),
}
wrong, counts = [], {}

def owner_of(section):
    if section in classes:
        return classes[section]
    try:
        return importlib.import_module(section)
    except ModuleNotFoundError as error:
        return error

for section, decided in names.items():
    owner = owner_of(section)
    for name, word in decided.items():
        counts[word] = counts.get(word, 0) + 1
        if word != "here" and word not in reasons:
            wrong.append(f"{section}.{name}: no reason {word}")
        if isinstance(owner, ModuleNotFoundError):
            said = str(owner)
        else:
            try:  # a module that may be imported and has no names says so of any
                found = getattr(owner, "any_name" if name == "*" else name)
                if isinstance(found, Unusable):
                    found()
                said = "here"
            except AttributeError as error:
                said = str(error)
        if (said != "here") if word == "here" else (reasons.get(word, "?") not in said):
            wrong.append(f"{section}.{name} is decided as {word}: {said[:120]}")
print(json.dumps([wrong, counts]))
""", PYTHONPATH=package + "/_compat")
    wrong, counts = json.loads(done.stdout.splitlines()[-1])
    assert wrong == []
    assert counts["here"] > 600 and counts["dynamic"] > 50
