"""Reads the cases of dataset_parity.py with the package that this interpreter has,
and writes what each one fed.

usage: dataset_feeds.py paddle|fleetrun CASES.json RESULTS.json

A case is read in a child of its own, since Paddle answers bad data with abort(). A result is {"ended": "ok",
"batches"} or {"ended": "error" | "signal 6" …, "text"}; a batch is a list of slots, in use_var order, each
[bytes in hexadecimal, offsets or None].
"""

import json
import os
import sys
import tempfile

LIMIT = 60  # seconds for one case


def build(paddle, case, more=None):
    """The variables of a case and its dataset; `more` settings are ours alone."""
    variables = [paddle.static.data(name=name, shape=[None, *shape], dtype=dtype, lod_level=lod)
                 for name, dtype, shape, lod in case["slots"]]
    kind = paddle.distributed.QueueDataset if case["kind"] == "queue" else paddle.distributed.InMemoryDataset
    dataset = kind()
    dataset.init(use_var=variables, pipe_command=case["command"], batch_size=case["batch"],
                 thread_num=case["threads"],
                 **case["init"], **(more or {}))
    for name, settings in case["settings"]:
        getattr(dataset, name)(**settings)
    dataset.set_filelist(case["files"])
    if case["preload"]:
        dataset.preload_into_memory()
        dataset.wait_preload_done()
    elif case["kind"] != "queue":
        dataset.load_into_memory()
    call_all(dataset, case["after"])
    return variables, dataset


def call_all(dataset, calls):
    for call in calls:
        name, *arguments = [call] if isinstance(call, str) else call
        own = getattr(dataset, name, None)
        # some are of Paddle's inner object alone
        (own if callable(own) else getattr(dataset.dataset, name))(*arguments)


def read_paddle(case):
    """What a py_func operator is handed, batch by batch."""
    import numpy
    import paddle

    paddle.enable_static()
    variables, dataset = build(paddle, case)
    batches = []

    def take(*tensors):
        batches.append([[numpy.array(tensor).tobytes().hex(), tensor.lod()[0] if lod else None]
                        for tensor, (_, _, _, lod) in zip(tensors, case["slots"])])

    paddle.static.py_func(func=take, x=variables, out=None)
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    executor.infer_from_dataset(paddle.static.default_main_program(), dataset)
    # what works on examples where two passes, or a global_shuffle of several trainers, have put them
    if case["after_passes"]:
        executor.infer_from_dataset(paddle.static.default_main_program(), dataset)
        call_all(dataset, case["after_passes"])
        batches.clear()
        executor.infer_from_dataset(paddle.static.default_main_program(), dataset)
    return batches


def read_fleetrun(case):
    """The batches that the engine is handed, by reader."""
    import fleetrun as paddle
    import numpy
    from fleetrun import _native

    paddle.enable_static()
    dataset = build(paddle, case, case["our_init"])[1]
    call_all(dataset, case["after_passes"])
    source = dataset.native()
    _native.start_reading(source, True)
    batches = []
    for reader in range(_native.readers_of(source)):
        while (batch := _native.read_batch(source, reader)) is not None:
            batches.append([[numpy.asarray(values).tobytes().hex(),
                             None if offsets is None else numpy.asarray(offsets).tolist()]
                            for values, offsets in batch])
    return batches


def in_child(read, case):
    """The result of read(case) in a child process."""
    with tempfile.TemporaryDirectory() as folder:
        answer, noise = os.path.join(folder, "answer"), os.path.join(folder, "noise")
        pid = os.fork()
        if pid == 0:
            status = 3
            try:
                os.dup2(os.open(noise, os.O_WRONLY | os.O_CREAT), 1)
                os.dup2(1, 2)
                import signal
                signal.alarm(LIMIT)
                batches = read(case)
                with open(answer, "w") as file:
                    json.dump(batches, file)
                status = 0
            except BaseException as error:  # the parent reads it
                with open(noise, "w") as file:
                    file.write(f"{type(error).__name__}: {error}")
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status == 0:
            with open(answer) as file:
                return {"ended": "ok", "batches": json.load(file)}
        with open(noise, errors="replace") as file:
            return {"ended": f"signal {-status}" if status < 0 else "error", "text": file.read()[-2000:]}


def main():
    side, cases, results = sys.argv[1:]
    os.environ["FLAGS_enable_pir_api"] = "0"
    if side == "paddle":
        import paddle  # noqa: F401  once, before the children
    else:
        import fleetrun  # noqa: F401
    with open(cases) as file:
        wanted = json.load(file)
    read = read_paddle if side == "paddle" else read_fleetrun
    with open(results, "w") as file:
        json.dump({case["name"]: in_child(read, case) for case in wanted}, file)


if __name__ == "__main__":
    main()
