"""Executor: runs programs on arrays (run) and over datasets (train_from_dataset, infer_from_dataset).

Source: documents 002 and 003; the engine is runtime/engine/executor.h and runtime/trainer/dataset_trainer.h.
"""

import os

import numpy

from fleetrun import _lazy, _native, elastic, framework
from fleetrun import _places as places
from fleetrun._arguments import refuse, warn_once
from fleetrun._error import Error
from fleetrun._heartbeat import heartbeat
from fleetrun._places import CPUPlace
from fleetrun._types import Any, Fetches, Program, Scope, Sequence
from fleetrun.distributed._in_programs import calls_ranks
from fleetrun.distributed.dataset._base import DatasetBase, may_be_empty
from fleetrun.lod_tensor import LoDTensor
from fleetrun.static import groups, loose_shapes
from fleetrun.static._runs import LOADERS, RUNS, unwritten
from fleetrun.static.compiler import CompiledProgram
from fleetrun.static.feeds import complete_feeds
from fleetrun.static.fetch_handler import FetchHandler, Listener
from fleetrun.static.lookups import tables_of_run
from fleetrun.static.single_value import SingleValue
from fleetrun.static.training import is_trained, tables_of

__all__ = ["Executor", "FetchHandler", "SingleValue"]


class Executor:
    """Runs programs on the CPU. `last_pass` holds what the last pass over a dataset did: examples, batches,
    seconds and fetch_means (a list, in the order of fetch_list)."""

    def __init__(self, place: CPUPlace | str | None = None) -> None:
        self.place = places.check(place)
        self.last_pass: Any = None

    def run(
        self,
        program: Program | CompiledProgram | None = None,
        feed: Any = None,
        fetch_list: Fetches | None = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Scope | None = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
        use_prune: bool = False,
        return_merged: bool = True,
    ) -> list[Any]:
        """Runs `program` once and returns the values of fetch_list, a list of arrays in its order.

        program: the default main program when not given. feed: {name: array}, or a list of one, as a
        DataLoader gives it; an array has its variable's type, a plain number or list is converted. What is
        not fed comes from the DataLoaders of the program (DataLoader.from_generator(iterable=False)).
        fetch_list: variables or names. return_numpy=False gives LoDTensors. A variable with lod_level=1 is
        fed a LoDTensor (paddle.base.create_lod_tensor), or for sequences of one length [batch, length]. A
        name that the program has not is left out with a warning. A CompiledProgram(...).with_data_parallel
        runs on several replicas: feed is split along the batch, or a list with a feed for each; values are
        those of all replicas behind each other along their first axis, with return_merged=False lists of each
        replica's.
        Throws: Error(config) naming an input that is missing or disagrees, Error(network) when a server is
        gone, core.EOFException when a DataLoader of the program has no more batches. Threads that run one
        program take turns.
        """
        refuse("Executor.run", use_prune=(use_prune, False))
        graph = _program(program)
        with RUNS.of(graph).turn:
            return self._run(
                program,
                graph,
                feed,
                _names(fetch_list),
                scope or framework.global_scope(),
                return_numpy,
                return_merged,
            )

    def _run(self, compiled, program, feed, names, scope, return_numpy, return_merged):
        each = compiled.feeds(feed, LOADERS.of(program)) if _is_data_parallel(compiled) else [feed]
        parts = [_arrays(program, part, scope) for part in complete_feeds(program, each)]
        if any([loose_shapes.fit(program, part) for part in parts]):
            RUNS.of(program).runner = None
            if _is_data_parallel(compiled):
                compiled.replica_runner = None
        training = tables_of(program) if is_trained(program) else None
        if training is not None:
            training.set_rate(scope.native)
        runner = _replica_runner(compiled, program, scope)
        parallel = runner is not None
        if not parallel:
            runner = _runner(program, scope)
        if training is not None:
            training.step_with(runner)
        fed: dict[str, Any] = {}
        if parallel and len(each) > 1:
            runner.run_each(parts)
        elif len(parts) > 1:
            what = f"Executor.run: feed has {len(parts)} parts for one replica"
            raise Error("config", what, "CPU_NUM says how many replicas there are")
        else:
            fed = parts[0]
            runner.run(fed)
        if training is not None:
            training.count_step()
            training.leave_dense(scope)
        after = RUNS.of(program).after
        if after is not None:
            after(scope.native)
        heartbeat()
        elastic.check()
        as_asked = _fetched if return_numpy else _lod_tensor
        if not parallel:
            # What is fed may be fetched, read by an operator or not.
            kept = {name: fed[name] for name in unwritten(program, fed.keys() & set(names))}
            kept |= training.rows_of(names) if training is not None and names else {}
            values = [
                _as_fed(kept[name], return_numpy) if name in kept else as_asked(runner.value(name))
                for name in names
            ]
            if not return_numpy:
                groups.give(program, zip(names, values), fed, runner)
            return (
                [_of_one_replica(value, return_merged) for value in values]
                if _is_data_parallel(compiled)
                else values
            )
        if return_merged:
            return [as_asked(runner.merged(name)) for name in names]
        return [[as_asked(value) for value in runner.values(name)] for name in names]

    def train_from_dataset(
        self,
        program: Program | CompiledProgram | None = None,
        dataset: DatasetBase | None = None,
        scope: Scope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Fetches | None = None,
        fetch_info: Sequence[str] | None = None,
        print_period: int = 100,
        fetch_handler: Any = None,
    ) -> None:
        """Trains `program` on every batch of `dataset` once.

        thread: trainer and reader threads, 0 for the dataset's own. fetch_list, fetch_info: variables and the
        texts to print them under, every print_period batches of the first thread, on stdout: `time:
        [2022-05-18 11:27:27], batch: [1], loss[1]:[0.666739]`. At the end of the pass one more line, which
        Paddle has not: `examples: N, batches: N, seconds: S, examples/s: R`, and one that says what bounds
        the pass (read, pull, compute, push; read, compute, exchange where the program is trained
        collectively) and what to change; the same figures are in `last_pass`. A program that is trained
        collectively reads this trainer's own files on every trainer: a step averages the gradients of one
        batch of each thread of each trainer. Who has no batch left takes part with none, so trainers need not
        have equally many; the pass ends when nobody has one, with the same parameters everywhere.
        debug: also prints what each type of operator took. fetch_handler: a FetchHandler, which takes values
        in place of fetch_list's lines. Returns None.
        Throws: Error(data) naming file, line and slot, or the pipe command that failed, and where a dataset
        has no example in a job of one trainer (FLEETRUN_EMPTY_DATASET=allow lets it pass); Error(network).
        """
        self._pass(
            "train_from_dataset",
            True,
            program,
            dataset,
            scope,
            thread,
            fetch_list,
            fetch_info,
            print_period,
            fetch_handler,
            debug,
        )

    def infer_from_dataset(
        self,
        program: Program | CompiledProgram | None = None,
        dataset: DatasetBase | None = None,
        scope: Scope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Fetches | None = None,
        fetch_info: Sequence[str] | None = None,
        print_period: int = 100,
        fetch_handler: Any = None,
    ) -> None:
        """Like train_from_dataset, forward only: no parameter changes."""
        self._pass(
            "infer_from_dataset",
            False,
            program,
            dataset,
            scope,
            thread,
            fetch_list,
            fetch_info,
            print_period,
            fetch_handler,
            debug,
        )

    def close(self) -> None:
        """Accepted: nothing is held that the end of the process does not free."""

    def _pass(
        self,
        call,
        train,
        program,
        dataset,
        scope,
        thread,
        fetch_list,
        fetch_info,
        print_period,
        fetch_handler,
        debug,
    ):
        if fetch_handler is not None and not isinstance(fetch_handler, FetchHandler):
            raise Error(
                "config",
                f"Executor.{call}(fetch_handler={fetch_handler!r}): it is not a FetchHandler",
                "subclass paddle.static.executor.FetchHandler",
            )
        listener = None if fetch_handler is None else Listener(fetch_handler)
        if listener is not None:
            if fetch_list:
                warn_once("fetch_list", f"Executor.{call}: fetch_list has no effect beside fetch_handler")
            fetch_list, fetch_info, print_period = listener.variables, None, 1
        if not hasattr(dataset, "one_pass"):
            given = "no dataset is given" if dataset is None else f"{dataset!r} is not a dataset"
            raise Error(
                "config", f"Executor.{call}: {given}", "pass dataset=paddle.distributed.QueueDataset()"
            )
        if not isinstance(thread, int) or thread < 0:
            raise Error(
                "config",
                f"Executor.{call}(thread={thread!r})",
                "give a number of threads, 0 for the dataset's own",
            )
        program = _program(program)
        names = _names(fetch_list)
        infos = list(fetch_info or names)
        if len(infos) != len(names):
            raise Error(
                "config",
                f"Executor.{call}: {len(names)} in fetch_list and {len(infos)} in fetch_info",
                "give each fetched variable its text",
            )
        if dataset.threads_of_pass(thread) > 1 and calls_ranks(program):
            warn_once("threads", f"Executor.{call} takes one thread: the program calls other ranks, in order")
            thread = 1
        training = tables_of_run(program)
        if training is not None:
            training.leave_pass()
        _lead_path()
        scope = scope or framework.global_scope()
        take, period = _print_line if listener is None else listener.take, int(print_period)
        if train and training is not None:
            training.set_rate(scope.native)
            threads = 1 if training.collective is not None else dataset.threads_of_pass(thread)
            take, period = training.counting(scope.native, threads, take, period)
        shown = {"fetch": names, "fetch_info": infos, "print_period": period, "print_line": take}
        client: Any = training.client if training else None
        with dataset.one_pass(thread) as reading:
            if train and training is not None and training.collective is not None:
                self.last_pass = training.collective.run_pass(
                    program, scope.native, reading, debug=bool(debug), **shown
                )
            else:
                self.last_pass = _native.run_pass(
                    program.native,
                    scope.native,
                    reading,
                    training.plan if training else _native.TablePlan(),
                    client,
                    train=train,
                    mode=training.mode if training else "async",
                    pull_dense_every=training.exchange.pull_every if training and training.exchange else 1,
                    debug=bool(debug),
                    part=training.part if training else 0,
                    **shown,
                )
        if listener is not None:
            listener.end()
        _print_line(_summary(self.last_pass))
        if training is not None:
            training.tell_of_skipped(call, self.last_pass)
        for more in (self.last_pass.operator_table, self.last_pass.bound):
            if more:
                _print_line(more)
        elastic.check()
        before = self.last_pass.skipped > 0 or self.last_pass.skipped_whole  # this process was started again
        if self.last_pass.examples == 0 and not before:
            _tell_of_nothing(call, list(getattr(dataset, "filelist", [])))


def _summary(result):
    rate = result.examples / result.seconds if result.seconds > 0 else 0.0
    return (
        f"examples: {result.examples}, batches: {result.batches}, seconds: {result.seconds:.3f}, "
        f"examples/s: {rate:.1f}"
    )


def _tell_of_nothing(call, files):
    """Of a pass without an example. One trainer of several may have none. Throws: Error(data)."""
    given = f"{len(files)} files ({files[0]}, …)" if len(files) > 1 else files[0] if files else "no file"
    what = f"Executor.{call}: the dataset gave no example out of {given}"
    if may_be_empty():
        return warn_once("no example", what)
    raise Error(
        "data",
        what,
        "look at the files, the pipe command and drop_last; FLEETRUN_EMPTY_DATASET=allow goes on",
    )


def _print_line(line):
    print(line, flush=True)


def _lead_path():
    """Lets `python` in a pipe command be this interpreter when it comes from a virtual environment, as under
    the
    launcher: Debian has no `python`."""
    import sys

    folder = os.path.dirname(sys.executable)
    path = os.environ.get("PATH", os.defpath)
    if sys.prefix != sys.base_prefix and folder not in path.split(os.pathsep):
        os.environ["PATH"] = folder + os.pathsep + path


def _program(program):
    if program is None:
        return framework.default_main_program()
    program = getattr(program, "compiled_from", program)
    if not isinstance(program, framework.Program):
        raise Error("config", f"{program!r} is not a program", "pass a paddle.static.Program")
    return program


def _names(fetches):
    if isinstance(fetches, (list, tuple)):
        # What minimize() returned may stand among them: all that is updated is updated in any case.
        return [name for fetch in fetches if not _is_minimized(fetch) for name in _names(fetch)]
    return [] if fetches is None else [_name(fetches)]


def _is_minimized(fetch):
    return isinstance(fetch, tuple) and len(fetch) == 2 and isinstance(fetch[1], list)


def _name(fetch):
    if isinstance(fetch, framework.Variable):
        return fetch.name
    if isinstance(fetch, str):
        return fetch
    raise Error("config", f"{fetch!r} in fetch_list is neither a variable nor a name")


def _runner(program, scope):
    """The native runner of `program` over `scope`; a new one when the program has grown since."""
    training = tables_of_run(program)
    client: Any = training.client if training else None
    age = training.age if training is not None else 0
    key = (id(scope), id(client), program.native.operator_count(), age)
    run = RUNS.of(program)
    if run.runner is not None and run.runner[0] == key:
        return run.runner[1]
    runner: Any
    if training is None:
        runner = _native.Executor(program.native, scope.native)
    elif not is_trained(program):
        # Evaluation pushes nothing, so it must not be a participant whose pushes others wait for.
        runner = _native.StepRunner(
            program.native, scope.native, training.plan, client, "async", _step_timeline()
        )
    elif training.collective is not None:
        runner = training.collective.make_runner(program, scope.native, _step_timeline())
    else:
        runner = _native.StepRunner(
            program.native, scope.native, training.plan, client, training.mode, _step_timeline()
        )
    run.runner = (key, runner, scope)
    return runner


def _step_timeline():
    """A timeline for the steps of a new runner where FLEETRUN_TRACE asks for one; it ends with the
    process."""
    import atexit

    timeline = _native.step_timeline()
    if timeline is not None:
        atexit.register(timeline.close)
    return timeline


def _is_data_parallel(compiled):
    return getattr(compiled, "is_data_parallel", False)


def _of_one_replica(value, merged):
    """As several replicas' values are given: behind each other along an axis, or in a list."""
    if not merged:
        return [value]
    return value.reshape(1) if isinstance(value, numpy.ndarray) and value.ndim == 0 else value


def _replica_runner(compiled, program, scope):
    """The native runner of a data parallel program over `scope`, a new one when the program has grown since;
    None for any other program, and for one replica that exchanges nothing with other trainers."""
    if not _is_data_parallel(compiled):
        return None
    training = tables_of_run(program)
    tables = training if training is not None and training.plan.tables() else None
    alone = tables is not None or training is None or training.collective is None
    if alone and compiled.replicas == 1:
        return None
    if training is not None and training.makes_gradients and compiled.replicas > 1:
        raise Error(
            "config",
            f"apply_gradients() of what the script made of its gradients, on {compiled.replicas} replicas: "
            "each would make it of its own, before their mean",
            "run one replica (CPU_NUM=1)",
        )
    if tables is not None and tables.clips:
        raise Error(
            "config",
            f"grad_clip on {compiled.replicas} replicas of a program with tables: each would clip its own "
            "gradients, before their mean",
            "run one replica (CPU_NUM=1), or leave grad_clip out",
        )
    client = tables.client if tables is not None else None
    age = training.age if training is not None else 0
    key = (id(scope), id(client), program.native.operator_count(), age, compiled.replicas)
    if compiled.replica_runner is None or compiled.replica_runner[0] != key:
        compiled.replica_runner = (
            key,
            _new_replica_runner(compiled, program, scope, training, client),
            scope,
        )
    return compiled.replica_runner[1]


def _new_replica_runner(compiled, program, scope, training, client):
    if calls_ranks(program):
        raise Error(
            "config",
            f"{compiled.replicas} replicas of a program that calls other ranks, which would get the calls of "
            "each in any order",
            "run one replica (CPU_NUM=1)",
        )
    if client is None:
        collective = training.collective if training is not None and is_trained(program) else None
        return _native.ReplicaRunner(
            program.native,
            scope.native,
            compiled.replica_options,
            collective.communicators if collective else [],
            collective.native_options if collective else _native.CollectiveOptions(),
        )
    # Evaluation pushes nothing, so it must not be a participant whose pushes others wait for.
    mode = training.mode if is_trained(program) else "async"
    return _native.ReplicaRunner(
        program.native, scope.native, compiled.replica_options, training.plan, client, mode
    )


def _fetch_var(name: str | framework.Variable, scope: Scope | None = None, return_numpy: bool = True) -> Any:
    """What the scope (the global one) holds under a name: an array, or with return_numpy=False the tensor,
    which a script may change. Throws: Error(config) where there is none."""
    name = name.name if isinstance(name, framework.Variable) else name
    found = (scope or framework.global_scope()).find_var(name)
    if found is None:
        raise Error("config", f"the scope has no {name}", "run the start-up program first")
    return numpy.array(found.get_tensor()) if return_numpy else found.get_tensor()


def _fetched(value):
    array = numpy.asarray(value)
    return array.view(SingleValue) if array.size == 1 else array


def _as_fed(value, return_numpy):
    tensor = value if isinstance(value, LoDTensor) else LoDTensor(value)
    if return_numpy:
        return _fetched(numpy.array(tensor.array))
    return LoDTensor(tensor.array, tensor.lod_offsets)


def _lod_tensor(value):
    return LoDTensor(numpy.asarray(value), value.offsets)


def _arrays(program, feed, scope):
    """What is fed to inputs. What is fed to a variable that is kept, in one process, goes into the scope."""
    known = {name: value for name, value in feed.items() if _is_known(program, name)}
    training = tables_of(program)
    for name in list(known):
        variable = program.var(name)
        if variable.persistable and not variable.is_data and (training is None or not training.distributed):
            scope.var(name).set(numpy.asarray(known.pop(name), dtype=variable.dtype.name))
    fed: dict[str, Any] = {}
    for name, value in known.items():
        variable = program.var(name)
        if variable.lod_level:
            fed.update(groups.feeds(program, name, value))
        fed[name] = _sequences(program, variable, _array(program, name, value))
    return fed


def _is_known(program, name):
    """Whether the program has such a variable; what it has not is left out with a warning, as in Paddle."""
    known = program.has_var(name)
    if not known:
        warn_once(
            f"feed {name}", f"Executor.run: feed '{name}' has no effect: the program has no such variable"
        )
    return known


def _sequences(program, variable, value):
    """An array that is fed to a variable of sequences as sequences. One of the variable's shape has a row for
    each, where no operator asks how they are parted; [batch, length] for [-1, 1] has them of one length."""
    if variable.lod_level == 0 or not isinstance(value, numpy.ndarray) or not value.ndim:
        return value
    if value.ndim == 2 and value.shape[1] > 1 and variable.shape == (-1, 1):
        rows, length = value.shape
        return LoDTensor(value.reshape(-1, 1), range(0, rows * length + 1, length))
    if _asks_for_sequences(program, variable.name):
        return value
    return LoDTensor(value, range(len(value) + 1))


def _asks_for_sequences(program, name):
    """Whether an operator that the variable leads to asks which rows belong together."""
    kinds = ("sequence_pool", "sequence_gru", "sequence_lstm")
    if not any(map(program.native.has_operator, kinds)):
        return False
    reached = {name}
    for op in program.ops:
        if op.type in kinds:  # of their first input alone
            if op.inputs[0] in reached:
                return True
        # lod_reset parts the rows of its first input anew.
        elif not reached.isdisjoint(op.inputs[1:] if op.type == "lod_reset" else op.inputs):
            reached.update(op.outputs)
    return False


def _array(program, name, value):
    variable = program.var(name)
    if not variable.is_data and not name.endswith("@GRAD"):
        if variable.persistable or not unwritten(program, {name}):
            raise Error(
                "config",
                f"feed '{name}' is not an input of the program",
                "feed variables of paddle.static.data; scope.var(name).set(array) gives a parameter a value",
            )
        program.native.take_as_input(name)  # of block.create_var: Paddle feeds any variable
        RUNS.of(program).runner = None
    if isinstance(value, numpy.ndarray):
        return loose_shapes.with_axes(variable, numpy.ascontiguousarray(value) if value.ndim else value)
    if isinstance(value, framework.ScopeVariable):
        return numpy.asarray(value)
    if isinstance(value, LoDTensor):
        if not value.has_valid_recursive_sequence_lengths():
            raise Error(
                "config",
                f"{name} is fed {value.shape()} with sequences that begin and end at {value.lod_offsets}",
                "let its lengths add up to its rows",
            )
        return value if value.lod_offsets else value.array
    try:
        if value is None:
            raise TypeError("None")
        return loose_shapes.with_axes(variable, numpy.asarray(value, dtype=variable.dtype.name))
    except (TypeError, ValueError, OverflowError) as error:
        raise Error(
            "config",
            f"feed '{name}': cannot convert to {variable.dtype.name}: {error}",
            f"feed it {variable.dtype.name} {list(variable.shape)}",
        ) from error


__getattr__, __dir__ = _lazy.attach(
    __name__,
    {**_lazy.names("framework", "global_scope scope_guard"), "as_numpy": "static.single_value:as_numpy"},
)
