"""What else Paddle's datasets are told: kept where it changes no example, refused by name where it would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fleetrun._arguments import refuse, warn_once

if TYPE_CHECKING:
    from fleetrun._variable import Variable

_ROWS = "a table makes a row when its id is first asked for"


class Kept:
    """A part of every dataset."""

    def __init__(self) -> None:
        self.trainer_num = 1
        self._uid_slot = ""
        self._shuffles_by_uid = False
        self._pass_id = 0

    @property
    def dataset(self) -> Any:
        """Itself: in Paddle the C++ object, which has some of its calls."""
        return self

    def _set_uid_slot(self, uid_slot):
        self._uid_slot = str(uid_slot)

    def set_shuffle_by_uid(self, enable_shuffle_uid: bool) -> None:
        """True: examples of one user (of one value of _set_uid_slot()) are to come to one trainer.
        global_shuffle() between several trainers refuses it."""
        self._shuffles_by_uid = bool(enable_shuffle_uid)

    def _set_trainer_num(self, trainer_num):
        """The Fleet that global_shuffle() is given knows the trainers."""
        self.trainer_num = trainer_num

    def set_pass_id(self, pass_id: int) -> None:
        """Kept, for get_pass_id()."""
        self._pass_id = pass_id

    def get_pass_id(self) -> int:
        """What set_pass_id() was given."""
        return self._pass_id

    def get_epoch_finish(self) -> bool:
        """False: a graph whose walks end an epoch lies on GPUs."""
        return False

    def set_date(self, date: str) -> None:
        """Accepted: fleet.shrink() ends a day."""

    def set_graph_config(self, config: Any) -> None:
        """Accepted with a warning: it is for walks in a graph on GPUs."""
        self._no_effect("set_graph_config", "there is no graph on GPUs; files are read as they are")

    def set_generate_unique_feasigns(self, generate_uni_feasigns: bool, shard_num: int) -> None:
        """Accepted: tables are not filled before training."""

    def generate_local_tables_unlock(self, *arguments: int) -> None:
        """Accepted with a warning: tables are not filled before training."""
        self._no_effect("generate_local_tables_unlock", _ROWS)

    def set_rank_offset(self, rank_offset: str) -> None:
        """Accepted with a warning: it is of page views."""
        if rank_offset:
            self._no_effect("set_rank_offset", "examples are not merged by page views")

    def set_pv_batch_size(self, pv_batch_size: int) -> None:
        """Accepted: examples are not merged by page views."""

    set_merge_by_sid = set_current_phase = set_pv_batch_size

    def set_enable_pv_merge(self, enable_pv_merge: bool) -> None:
        """False only. Throws: Error(config)."""
        refuse(f"{type(self).__name__}.set_enable_pv_merge", enable_pv_merge=(enable_pv_merge, False))

    def set_parse_logkey(self, parse_logkey: bool) -> None:
        """False only. Throws: Error(config)."""
        refuse(f"{type(self).__name__}.set_parse_logkey", parse_logkey=(parse_logkey, False))

    def set_so_parser_name(self, so_parser_name: str) -> None:
        """ "" only: text is MultiSlot, or what a schema says. Throws: Error(config)."""
        refuse(f"{type(self).__name__}.set_so_parser_name", so_parser_name=(so_parser_name, ""))

    def preprocess_instance(self) -> None:
        """Nothing: examples are not merged by page views."""

    postprocess_instance = preprocess_instance

    _set_shuffle_by_uid = set_shuffle_by_uid
    _set_generate_unique_feasigns = set_generate_unique_feasigns
    _generate_local_tables_unlock = generate_local_tables_unlock

    def _check_use_var_with_data_generator(
        self, var_list: Sequence[Variable], data_generator_class: Any, test_file: str
    ) -> None:
        """Whether what a data generator makes of the lines of a file fits these variables.

        Throws: ValueError for another number of slots or an empty one, TypeError for values of another type.
        """
        with open(test_file) as file:
            for line in file:
                for slots in data_generator_class.generate_sample(line)():
                    _check(var_list, slots)

    def _no_effect(self, call, why):
        warn_once(f"dataset.{call}", f"{type(self).__name__}.{call} has no effect: {why}")


def _check(variables, slots):
    if len(variables) != len(slots):
        raise ValueError(
            f"var length mismatch error: var_list = {len(variables)} vs data_generator = {len(slots)}"
        )
    for variable, (name, values) in zip(variables, slots):
        if not values:
            raise ValueError(f"var length error: var {name}'s length in data_generator is 0")
        kind, word = (float, "float") if variable.dtype.name == "float32" else (int, "int")
        if not all(isinstance(value, kind) for value in values):
            raise TypeError(
                f"var dtype mismatch error: var name = {name}, var type in var_list = {word}, while var in "
                f"data_generator contains non-{word} value, which is {values}: look at the order of "
                "var_list, and at the types that the data generator gives"
            )
