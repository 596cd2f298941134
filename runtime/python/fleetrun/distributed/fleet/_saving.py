"""Saving, loading and shrinking of what Fleet trains: calls of trainers, as a rule of the first one alone,
with a barrier after."""

import os

from fleetrun import framework
from fleetrun._arguments import warn_of_save, warn_once
from fleetrun._error import Error
from fleetrun._files import on_this_host
from fleetrun._types import Any, Callable, Fetches, Program, Scope, Sequence
from fleetrun.static.training import Training, tables_of_all, training_of

# Modes of saving after which the tables are others: what changed since is counted from there, rows are older.
_CHANGING = (1, 3)


class Saving:
    """The part of Fleet that saves and loads models."""

    _role: Any
    is_first_worker: Callable[[], bool]
    _need: Callable[..., None]
    _need_training: Callable[[str], Training]

    def save_persistables(
        self,
        executor: Any,
        dirname: str | os.PathLike[str],
        main_program: Program | None = None,
        mode: int | str = 0,
        format: str | None = None,
    ) -> None:
        """Every server writes its tables below `dirname` on its own host, or copies them there where it is a
        name like s3://bucket/model (--ps_upload_cmd); a process alone writes all it has there.

        mode: 0 everything; of tables that keep statistics (ShowClickEntry, sparse_table_configs) 1 the rows
        whose score and change since the last such save are large enough, 2 those whose score is; 3
        everything, and rows are a day older afterwards. Of trainers that all call it in mode 1 or 3 the
        first one saves. format: "paddle" for a checkpoint that Paddle 2.6.2
        loads, which one server writes; load_model takes it too. Throws: Error(host) when `dirname` cannot be
        written.
        """
        from fleetrun.distributed.fleet import _local_model as local_model

        training = self._keep("save_persistables")
        mode = _mode("save_persistables", mode)
        if mode in _CHANGING and not self._is_the_one_that("save_persistables", f"mode={mode}"):
            return
        if format not in (None, "paddle"):
            raise Error(
                "config",
                f"fleet.save_persistables(format={format!r}) is not known",
                'leave it out, or give "paddle"',
            )
        if format == "paddle":
            if not self._role.distributed:
                raise Error(
                    "config",
                    'fleet.save_persistables(format="paddle") in a process without servers',
                    "save from a job with one server: it loads what this process saves",
                )
            training.client.save_for_paddle(str(dirname), mode)
            return
        if self._role.distributed:
            training.client.save(str(dirname), mode)
        else:
            dirname = on_this_host("fleet.save_persistables", dirname)
            local_model.save(training, main_program, dirname, mode)

    def save(
        self,
        dirname: str | os.PathLike[str],
        feed: Sequence[Any] = (),
        fetch: Sequence[Any] = (),
        mode: int | str = 0,
        **configs: Any,
    ) -> None:
        """save_inference_model of what computes `fetch` from `feed`, variables or names; without the two
        save_persistables."""
        if not feed and not fetch:
            self.save_persistables(None, dirname, mode=mode)
            return
        names = [one if isinstance(one, str) else one.name for one in feed]
        self.save_inference_model(None, str(dirname), names, list(fetch), mode=mode)

    def load_model(self, path: str | os.PathLike[str], mode: int | str = 0) -> None:
        """Reads back what save_persistables wrote; `mode` is the one that it was saved in.

        Where the newest save there is damaged, the one before it is read, and a RuntimeWarning says what is
        wrong.
        Throws: Error(data) for a directory that does not hold the program's tables.
        """
        from fleetrun.distributed.fleet import _local_model as local_model

        training = self._keep("load_model")
        _mode("load_model", mode)
        if self._role.distributed:
            warn_of_save(training.client.load(str(path)))
            self._pull_dense(training)
        else:
            warn_of_save(local_model.load(training, on_this_host("fleet.load_model", path)))

    def save_inference_model(
        self,
        executor: Any,
        dirname: str | os.PathLike[str],
        feeded_var_names: Sequence[str],
        target_vars: Fetches,
        main_program: Program | None = None,
        export_for_deployment: bool = True,
        mode: int | str = 0,
    ) -> None:
        """What computes `target_vars`, to dirname/model.pdmodel and .pdiparams, and the rows that it looks up
        to dirname/tables, which every server writes on its own host. The program is also where Paddle has it,
        dirname/dnn_plugin/__model__, for Program.parse_from_string().

        What else than feeded_var_names has to be fed is said in a warning. Throws: Error(host).
        """
        from fleetrun.static import io, serial

        training = self._keep("save_inference_model")
        training = (main_program is not None and training_of(main_program)) or training
        dirname = on_this_host("fleet.save_inference_model", dirname)
        io.warn_of_training("fleet.save_inference_model", export_for_deployment)
        kind = _mode("save_inference_model", mode)
        if kind in _CHANGING and not self._is_the_one_that("save_inference_model", f"mode={kind}"):
            return
        feeds, fetches = [str(name) for name in feeded_var_names], io.names_of(target_vars)
        self._pull_dense(training)
        path = os.path.join(str(dirname), "model")
        pruned = io.prune(main_program or training.main, feeds, fetches)
        io.write_with_tables(path, pruned, training, feeds, fetches, kind)
        serial.save_to_file(
            os.path.join(str(dirname), "dnn_plugin", "__model__"),
            serial.load_from_file(f"{path}.pdmodel"),
        )

    def load_inference_model(self, path: str | os.PathLike[str], mode: int | str = 0) -> None:
        """Reads the tables back that save_inference_model wrote, into those of the program that this process
        minimized."""
        training = self._keep("load_inference_model")
        _mode("load_inference_model", mode)
        if training.plan.tables():
            warn_of_save(training.client.load(os.path.join(str(path), "tables")))
        self._pull_dense(training)

    def save_dense_params(
        self,
        executor: Any,
        dirname: str | os.PathLike[str],
        scope: Scope,
        program: Program,
        var_names: Sequence[str] | None = None,
    ) -> None:
        """The dense parameters of `program` as the servers have them, to dirname/dense.pdparams; var_names:
        these only."""
        from fleetrun.static import io

        training = self._keep("save_dense_params")
        dirname = on_this_host("fleet.save_dense_params", dirname)
        self._pull_dense(training, scope)
        rows = {table.name for table in tables_of_all(training) if table.sparse}
        parameters = {
            parameter.name: parameter for parameter in program.all_parameters() if parameter.name not in rows
        }
        for name in var_names or ():
            if name not in parameters:
                raise Error(
                    "config", f"fleet.save_dense_params: {name} is not a dense parameter of the program"
                )
        chosen = parameters if var_names is None else var_names
        kept = io._kept(program)
        path = os.path.join(str(dirname), "dense.pdparams")
        io.write_pickled(path, {name: kept[name] for name in chosen}, 4)

    def shrink(self, threshold: float | None = None) -> int:
        """Once a day: decays shows and clicks of rows that keep statistics, and erases the rows that have
        expired.

        threshold: accepted as in Paddle, whose tables have their thresholds in their configuration too.
        Of trainers that all call it the first one does so, as in Paddle. Returns how many rows went. No row
        goes of a table without statistics, which is said where no table has them.
        """
        training = self._keep("shrink")
        if not self._is_the_one_that("shrink"):
            return 0
        tables = [table for table in tables_of_all(training) if table.has_statistics]
        if not tables:
            warn_once(
                "shrink",
                "fleet.shrink has no effect: no table keeps shows and clicks, so no row can expire; give "
                "sparse_embedding an entry=ShowClickEntry(…), or the strategy sparse_table_configs",
            )
        return sum(training.client.shrink(table.id) for table in tables)

    def save_one_table(self, table_id: int, path: str | os.PathLike[str], mode: int | str) -> None:
        """save_persistables(None, path, mode=mode), with a warning: a save holds all tables at one moment."""
        warn_once(
            "save_one_table",
            f"fleet.save_one_table({table_id}): the save holds all tables",
        )
        self.save_persistables(None, path, mode=mode)

    def load_one_table(self, table_id: int, path: str | os.PathLike[str], mode: int | str) -> None:
        """Refused. Throws: Error(config)."""
        raise Error("config", "fleet.load_one_table: a save is loaded whole", "use fleet.load_model")

    def save_cache_model(self, dirname: str | os.PathLike[str], **configs: Any) -> int:
        """save_persistables(None, dirname, mode=2), with a warning: rows by their score, in fleetrun's files
        and not those of Paddle's online service. Returns -1: nobody counts them."""
        warn_once(
            "save_cache_model",
            "fleet.save_cache_model saves what fleet.save_persistables(mode=2) does, rows by their score: "
            "there is no online service that would take a cache of rows",
        )
        self.save_persistables(None, dirname, mode=2)
        return -1

    def save_cache_table(
        self, table_id: int, pass_id: int, mem_cache_key_threshold: int = 4000000000
    ) -> None:
        """Accepted with a warning: it moves rows between GPUs and servers in Paddle."""
        warn_once(
            "save_cache_table",
            "fleet.save_cache_table has no effect: rows stay where they are between passes; cold rows leave "
            'memory by themselves with table_class="SSDSparseTable"',
        )

    def check_save_pre_patch_done(self) -> None:
        """Returns at once: a save is done when its call returns."""

    def _keep(self, call):
        """The training whose tables are kept, with no pass under way."""
        self._need(server=False, call=call)
        training = self._need_training(call)
        training.leave_pass()
        steps = training.collective.steps_since_average if training.collective is not None else 0
        if steps:
            import warnings

            warnings.warn(
                f"fleet.{call}: trainers have taken {steps} steps of local SGD apart, and this one keeps "
                "its own "
                "parameters: call fleet.barrier_worker() on every trainer before",
                RuntimeWarning,
                stacklevel=3,
            )
        return training

    def _is_the_one_that(self, call, arguments=""):
        """Whether a call counts that changes the tables: of several trainers the first one's does, which the
        others are told once."""
        if not self._role.distributed or self.is_first_worker():
            return True
        warn_once(
            f"{call} {arguments} on another trainer",
            f"fleet.{call}({arguments}) has no effect on trainer {self._role.rank}: that of the first "
            "trainer counts, and once for the job, as in Paddle",
        )
        return False

    def _pull_dense(self, training, scope=None):
        if self._role.distributed:
            for each in training.companions:
                each.pull_dense((scope or framework.global_scope()).native)


def _mode(call, mode):
    """One of Paddle's modes of saving as a number; its 4 and 5 (a part for an online service) save all, which
    is said. Throws: Error(config)."""
    if str(mode) in ("4", "5"):
        warn_once(f"mode {mode}", f"fleet.{call}(mode={mode!r}) takes all rows, as mode 0 does")
        return 0
    if str(mode) not in ("0", "1", "2", "3"):
        raise Error(
            "config",
            f"fleet.{call}(mode={mode!r}) is not known",
            "use 0 (all), 1 (what changed), 2 (by score) or 3 (all, at a day's end)",
        )
    return int(mode)
