"""paddle.fluid.incubate.fleet.utils.fleet_util: FleetUtil, what jobs that train day by day and pass by pass
have around fleet."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fleetrun import _lazy, framework
from fleetrun._error import Error
from fleetrun._types import Any, Scope
from fleetrun.distributed.fleet import metrics
from fleetrun.distributed.fleet._transpiler import fleet as transpiler_fleet
from fleetrun.distributed.fleet.older_pslib import fleet as pslib_fleet

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FleetUtil"]

_OWNER = "paddle.incubate.distributed.fleet.fleet_util.FleetUtil"
_FLEETS = {"pslib": pslib_fleet, "transpiler": transpiler_fleet}
_logger = logging.getLogger("fleetrun.fleet_util")


class FleetUtil:
    """mode: "pslib" or "transpiler", the fleet that the job uses. A model of a day and pass is saved to
    OUTPUT/DAY/PASS/, a day's to OUTPUT/DAY/0/ or base/, a change to OUTPUT/DAY/delta-PASS/."""

    def __init__(self, mode: str = "pslib") -> None:
        if mode not in _FLEETS:
            raise Error("config", f"FleetUtil(mode={mode!r})", 'use "pslib" or "transpiler"')
        self._fleet: Any = _FLEETS[mode]

    def __getattr__(self, name: str) -> Any:
        raise _lazy.MissingName(_OWNER, name, lambda: dir(type(self)))

    def rank0_print(self, s: Any) -> None:
        """Prints on the first trainer alone."""
        if self._fleet.worker_index() == 0:
            print(s, flush=True)

    def rank0_info(self, s: Any) -> None:
        """Logs on the first trainer alone."""
        if self._fleet.worker_index() == 0:
            _logger.info(s)

    def rank0_error(self, s: Any) -> None:
        """Logs an error on the first trainer alone."""
        if self._fleet.worker_index() == 0:
            _logger.error(s)

    def set_zero(
        self, var_name: str, scope: Scope | None = None, place: Any = None, param_type: str = "int64"
    ) -> None:
        """Lets a variable of the scope be zeros of its shape."""
        import numpy

        value = (scope or framework.global_scope()).var(var_name).get_tensor()
        value.set(numpy.zeros(value.shape(), param_type), place)

    def get_global_auc(
        self,
        scope: Scope | None = None,
        stat_pos: str = "_generated_var_2",
        stat_neg: str = "_generated_var_3",
    ) -> float | None:
        """The AUC of all trainers, from the counters of these names; None where the scope has them not."""
        scope = scope or framework.global_scope()
        if scope.find_var(stat_pos) is None or scope.find_var(stat_neg) is None:
            self.rank0_print("not found auc bucket")
            return None
        return metrics.auc(stat_pos, stat_neg, scope)

    def print_global_auc(
        self,
        scope: Scope | None = None,
        stat_pos: str = "_generated_var_2",
        stat_neg: str = "_generated_var_3",
        print_prefix: str = "",
    ) -> None:
        """Prints get_global_auc() on the first trainer."""
        self.rank0_print(f"{print_prefix} global auc = {self.get_global_auc(scope, stat_pos, stat_neg)}")

    def load_fleet_model(self, path: str, mode: int = 0) -> None:
        """Servers begin with what lies in `path`."""
        self._fleet.init_server(path, mode=mode)

    def save_fleet_model(self, path: str, mode: int = 0) -> None:
        """Saves all parameters and rows."""
        self._fleet.save_persistables(None, path, mode=mode)

    def load_model(self, output_path: str, day: Any, pass_id: Any) -> None:
        """load_fleet_model() of a day and pass."""
        self.load_fleet_model(f"{output_path}/{day}/{pass_id}/")

    def save_model(self, output_path: str, day: Any, pass_id: Any) -> None:
        """Saves all of a day and pass."""
        self._save(f"{output_path}/{day}/{pass_id}/", 0)

    def save_batch_model(self, output_path: str, day: Any) -> None:
        """Saves all of a day, at whose end rows age."""
        self._save(f"{output_path}/{day}/0/", 3)

    def save_delta_model(self, output_path: str, day: Any, pass_id: Any) -> None:
        """Saves the rows that have changed."""
        self._save(f"{output_path}/{day}/delta-{pass_id}/", 1)

    def save_xbox_base_model(self, output_path: str, day: Any) -> None:
        """Saves the rows that are worth it; later changes are those since then."""
        self._save(f"{output_path}/{day}/base/", 2)

    def _save(self, path: str, mode: int) -> None:
        self.rank0_print(f"going to save_model {path}")
        self.save_fleet_model(path, mode)
        self.rank0_print("save_model done")

    def get_online_pass_interval(
        self,
        days: str,
        hours: str,
        split_interval: int | str,
        split_per_pass: int | str,
        is_data_hourly_placed: bool,
    ) -> Sequence[Sequence[str]]:
        """The names of the splits of each pass of a day: a split is split_interval minutes, a pass
        split_per_pass of them; hours: "0 1 2 …" or "{0..23}", of which the first and the last count. A name
        is HHMM, or HH where data lie by the hour. Throws: Error(config)."""
        minutes, each = int(split_interval), int(split_per_pass)
        first, last = _ends(hours)
        begins = range(0, 24 * 60, minutes)
        splits = [
            f"{at // 60:02d}" if is_data_hourly_placed else f"{at // 60:02d}{at % 60:02d}"
            for at in begins
            if first <= at // 60 <= last
        ]
        return [splits[at : at + each] for at in range(0, len(splits) // each * each, each)]


def _ends(hours: str) -> tuple[int, int]:
    words = hours.strip().strip("{}").replace("..", " ").split()
    if not words or not all(word.isdigit() for word in words):
        raise Error("config", f"get_online_pass_interval: hours={hours!r}", 'give it "0 1 2" or "{0..23}"')
    return int(words[0]), int(words[-1])


__getattr__, __dir__ = _lazy.attach(__name__, owner=_OWNER.rpartition(".")[0])
