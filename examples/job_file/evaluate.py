"""Looks at the model that the trainers have saved by the time this is started."""

import json
import os

with open(os.environ["MODEL"]) as file:
    model = json.load(file)
assert model["step"] >= 3 and all(total >= 3 for total in model["sums"]), model
print("role", os.environ["FLEETRUN_ROLE"], "sees a model of at least 3 steps", flush=True)
