"""InMemoryDataset as a script uses it: in one process, and shuffled between the trainers of a job."""

import pytest

HEAD = """
import numpy
import fleetrun as paddle
from fleetrun import _native
paddle.enable_static()
ids = paddle.static.data("ids", [None, 1], "int64", lod_level=1)
price = paddle.static.data("price", [None, 2])
label = paddle.static.data("label", [None, 1], "int64")
def write(name, first, last, prefix=""):
    with open(name, "w") as file:
        for i in range(first, last):
            keys = " ".join(str(i * 10 + k) for k in range(1 + i % 3))
            file.write(f"{prefix.format(i)}{1 + i % 3} {keys} 2 {i} 0.5 1 {i}\\n")
    return name
def make(files, **settings):
    dataset = paddle.distributed.InMemoryDataset()
    dataset.init(**{"batch_size": 4, "thread_num": 1, "use_var": [ids, price, label], "pipe_command": "cat", **settings})
    dataset.set_filelist(files)
    return dataset
def batches(dataset, threads=0):
    source = dataset.native(threads)
    _native.start_reading(source, True)
    found = []
    for reader in range(_native.readers_of(source)):
        while (batch := _native.read_batch(source, reader)) is not None:
            found.append([numpy.asarray(values).tolist() for values, _ in batch])
    return found
def labels(dataset, threads=0):
    return sum((batch[2] for batch in batches(dataset, threads)), [])
"""


def test_loaded_once_and_read_by_many_passes(run):
    done = run(HEAD + """
dataset = make([write("a", 0, 10), write("b", 10, 21)], thread_num=2)
dataset.load_into_memory()
print(dataset.get_memory_data_size(), dataset.get_shuffle_data_size())
paddle.mean(price)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
for threads in (0, 1):
    exe.infer_from_dataset(dataset=dataset, thread=threads)
    print(exe.last_pass.examples, exe.last_pass.batches)
    assert labels(dataset, threads) == list(range(21))
assert batches(dataset)[0] == [[0, 10, 11, 20, 21, 22, 30], [[0, .5], [1, .5], [2, .5], [3, .5]], [0, 1, 2, 3]]
dataset.update_settings(drop_last=True, batch_size=5, queue_num=1)
assert labels(dataset) == list(range(20))
dataset.release_memory()
print(dataset.get_memory_data_size())
other = make(["a", "b"], input_type=1)
other.load_into_memory()
other.local_shuffle()
assert other.get_memory_data_size() == 21
try:
    other.native()
except paddle.Error as error:
    assert "a pass over an InMemoryDataset with input_type=1, whose lines are batches" in str(error), error
else:
    raise SystemExit("a line was taken for an example")
dataset.set_filelist(["b"])
dataset.load_into_memory()
dataset.load_into_memory()
print(dataset.get_memory_data_size())
dataset.update_settings(download_cmd="cat a; echo >&2", fs_name="hdfs://nowhere", input_type=0, use_var=[ids, price, label])
dataset.set_filelist(["hdfs:/a"])
dataset.load_into_memory()
print(dataset.get_memory_data_size())
""")
    lines = [line for line in done.stdout.splitlines() if not line.startswith(("examples: ", "bound by "))]
    assert lines == ["21 21", "21 6", "21 6", "0", "11", "10"]


def test_shuffles_are_decided_by_the_seed(run):
    done = run(HEAD + """
def orders(seed, threads):
    dataset = make([write("a", 0, 500)], shuffle_seed=seed, thread_num=threads)
    dataset.load_into_memory()
    dataset.local_shuffle()
    first = labels(dataset)
    dataset.global_shuffle()
    return first, labels(dataset)
first, second = orders(3, 1)
assert first != list(range(500)) and second != first and sorted(first) == sorted(second) == list(range(500))
assert orders(3, 2) == (first, second)
assert orders(4, 1) != (first, second)
print("done")
""")
    assert done.stdout == "done\n"


def test_preloading_and_its_errors(run):
    done = run(HEAD + """
dataset = make([write("a", 0, 1000), write("b", 1000, 2000)])
dataset.preload_into_memory(2)
dataset.wait_preload_done()
assert sorted(labels(dataset)) == list(range(2000))
open("b", "a").write("1 1 2 0\\n")
dataset.preload_into_memory()
try:
    dataset.wait_preload_done()
except paddle.Error as error:
    print(error.kind, str(error).splitlines()[0])
print(dataset.get_memory_data_size())
dataset.set_filelist(["a", "nowhere"])
try:
    dataset.preload_into_memory()
except paddle.Error as error:
    print(error.kind)
""")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("data b:1001:") and lines[1:] == ["0", "data"]


def test_ids_contents_merges_and_slots_shuffle(run):
    done = run(HEAD + """
dataset = make([write("a", 0, 30, "1 id{} 1 c{} ".replace("{}", "{0}"))])
dataset.set_parse_ins_id(True)
dataset.set_parse_content(True)
dataset.load_into_memory()
own = batches(dataset)
assert labels(dataset) == list(range(30))
try:
    dataset.slots_shuffle(["ids"])
except paddle.Error as error:
    print(str(error).splitlines()[0])
dataset.set_fea_eval(20, True)
dataset.slots_shuffle(["ids"])
assert batches(dataset) != own and labels(dataset) == list(range(30))
dataset.slots_shuffle([])
assert batches(dataset) == own

with open("m", "w") as file:
    file.write("1 u 1 5 2 0 0 1 7\\n1 v 1 5 2 0 0 1 7\\n1 u 1 0 2 1 1 1 8\\n1 w 1 5 2 0 0 1 1\\n1 w 1 6 2 0 0 1 1\\n")
dataset = make(["m"])
dataset._init_distributed_settings(merge_size=2)
dataset.load_into_memory()
print(dataset.merge_by_lineid())
print(batches(dataset))
dataset.load_into_memory()
dataset.global_shuffle()
print(dataset.get_shuffle_data_size())
""")
    assert done.stdout.splitlines() == [
        "InMemoryDataset.slots_shuffle without fea_eval",
        "{'merged': 1, 'wrong_size': 1, 'conflicts': 2}",
        "[[[5], [[1.0, 1.0]], [8]]]",
        "1"]


def test_zeros_are_kept_unless_asked_otherwise(run):
    done = run(HEAD + """
open("z", "w").write("3 0 4 0 2 0 0 1 0\\n1 0 2 1 1 1 1\\n")
for drops in (False, True):
    dataset = make(["z"], drop_zeros=drops)
    dataset.load_into_memory()
    print(batches(dataset)[0][0])
""")
    assert done.stdout.splitlines() == ["[0, 4, 0, 0]", "[4, 0]"]


def test_the_older_spellings(run):
    done = run(HEAD + """
import fleetrun.fluid as fluid
import fleetrun.distributed.fleet as fleet
dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
assert type(dataset) is paddle.distributed.InMemoryDataset is fleet.InMemoryDataset
dataset.set_batch_size(2)
dataset.set_thread(1)
dataset.set_use_var([ids, price, label])
dataset.set_pipe_command("cat")
dataset.set_filelist([write("a", 0, 5)])
dataset.set_queue_num(1)
dataset.set_fleet_send_batch_size(512)
dataset.set_merge_by_lineid(1)
dataset._set_parse_ins_id(False)
dataset.load_into_memory()
print(len(batches(dataset)))
""")
    assert done.stdout == "3\n"


@pytest.mark.parametrize("code, what", [
    ("make([], batchsize=3)", "InMemoryDataset.init(batchsize=...): there is no such setting"),
    ("make([]).update_settings(shuffle=1)",
     "InMemoryDataset.update_settings(shuffle=...): there is no such setting"),
    ("make([], batch_size=0)", "InMemoryDataset: batch_size=0"),
    ("make([], data_feed_type='PaddleBoxDataFeed')", "set_feed_type('PaddleBoxDataFeed')"),
    ("make([]).set_parse_logkey(True)", "set_parse_logkey(parse_logkey=True) is not supported"),
    ("make([]).load_into_memory()", "a dataset without files"),
    ("make(['a']).local_shuffle()", "local_shuffle: no examples are in memory"),
    ("exe.infer_from_dataset(dataset=make(['a']))",
     "a pass over an InMemoryDataset: no examples are in memory"),
    ("paddle.fluid.DatasetFactory().create_dataset('BoxPSDataset')",
     "create_dataset(datafeed_class='BoxPSDataset')"),
])
def test_what_it_cannot_do_is_named(run, code, what):
    done = run(HEAD + """
import fleetrun.fluid
exe = paddle.static.Executor(paddle.CPUPlace())
try:
    """ + code + """
except paddle.Error as error:
    print(error)
""")
    assert what in done.stdout


def test_what_paddle_keeps_of_a_dataset_is_kept(run):
    done = run(HEAD + """
dataset = make([write("a", 0, 4, "1 id{0} 1 c "), write("b", 4, 8, "1 id{0} 1 c ")], thread_num=2)
dataset._set_parse_ins_id(True)
dataset._set_parse_content(True)
dataset._set_trainer_num(3)
dataset._set_uid_slot("ids")
dataset._set_shuffle_by_uid(True)
dataset.set_graph_config({"walk_len": 24})
dataset.set_pass_id(2)
dataset._set_generate_unique_feasigns(True, 15)
dataset._generate_local_tables_unlock(0, 11, 1, 25, 15)
dataset.set_date("20211111")
dataset.set_enable_pv_merge(False)
print(dataset.parse_ins_id, dataset.parse_content, dataset.trainer_num, dataset.thread_num, dataset.filelist,
      dataset.get_pass_id(), dataset.get_epoch_finish())
dataset.thread_num = 0
dataset.load_into_memory()
dataset.global_shuffle()
print(sorted(labels(dataset)))
dataset.update_settings(merge_size=1)
print(dataset.dataset.merge_by_lineid(), dataset.dataset.get_memory_data_size())
for call in (paddle.distributed.fleet.FileInstantDataset().local_shuffle,
             paddle.distributed.fleet.FileInstantDataset().native, paddle.distributed.fleet.DatasetBase().native):
    try:
        call()
    except (paddle.Error, NotImplementedError) as error:
        print(str(error).split("\\n")[0])
""")
    assert done.stdout.splitlines() == [
        "True True 3 2 ['a', 'b'] 2 False",
        "[0, 1, 2, 3, 4, 5, 6, 7]",
        "{'merged': 8, 'wrong_size': 0, 'conflicts': 0} 8",
        "a QueueDataset does not shuffle",
        "FileInstantDataset: files of Paddle's MultiSlotFileInstantDataFeed are not read here",
        "DatasetBase",
    ]
    assert done.stderr.splitlines() == [
        "fleetrun: warning: InMemoryDataset.set_graph_config has no effect: there is no graph on "
        "GPUs; files are read as they are",
        "fleetrun: warning: InMemoryDataset.generate_local_tables_unlock has no effect: a table makes "
        "a row when its id is first asked for",
    ]


def test_a_data_generator_is_checked_against_the_variables(run):
    done = run(HEAD + """
class Generator:
    def generate_sample(self, line):
        return lambda: [eval(line)]
open("a", "w").write("[('ids', [1, 2]), ('price', [0.5, 1.0]), ('label', [1])]\\n")
check = make([])._check_use_var_with_data_generator
check([ids, price, label], Generator(), "a")
for variables in ([ids], [ids, label, price], [price, price, label]):
    try:
        check(variables, Generator(), "a")
    except (ValueError, TypeError) as error:
        print(type(error).__name__, str(error)[:40])
open("a", "w").write("[('ids', []), ('price', [0.5, 1.0]), ('label', [1])]\\n")
try:
    check([ids, price, label], Generator(), "a")
except ValueError as error:
    print(error)
""")
    assert done.stdout.splitlines() == [
        "ValueError var length mismatch error: var_list = 1 ",
        "TypeError var dtype mismatch error: var name = pri",
        "TypeError var dtype mismatch error: var name = ids",
        "var length error: var ids's length in data_generator is 0",
    ]
