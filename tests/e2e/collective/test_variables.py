"""Collective calls on variables: each rank's program makes them on the values that it has in each run."""
import re

HEAD = """
import numpy as np
import fleetrun as paddle
import fleetrun.fluid as fluid
import fleetrun.distributed as dist
import fleetrun.distributed.fleet as fleet

paddle.enable_static()
fleet.init(is_collective=True)
rank = fleet.worker_index()
x = paddle.static.data("x", [2, 2], "float32")
x.stop_gradient = False
older = fluid.layers.collective
exe = paddle.static.Executor()

def run(value, *fetched):
    exe.run(paddle.static.default_startup_program())
    return [each.tolist() for each in exe.run(feed={"x": np.full((2, 2), value, "float32")}, fetch_list=fetched)]
"""


def test_they_are_made_on_the_values_of_each_run(job):
    job(HEAD + """
mean, sent = paddle.mean(x), paddle.assign(x)
dist.all_reduce(mean)
dist.broadcast(sent, src=1)
parts, swapped = [], []
assert dist.all_gather(parts, x, sync_op=False).wait()
dist.alltoall([x, x + 1.0], swapped)
largest = older._c_allreduce(x, reduce_type="max")
for start in (1.0, 5.0):
    got = run(start + rank, mean, sent, *parts, *swapped, largest)
    flat = [np.ravel(each)[0] for each in got]
    assert flat == [2 * start + 1, start + 1, start, start + 1, start + rank, start + rank + 1, start + 1], flat
print("done")
""", 2).succeeded()


def test_sums_gathered_and_scattered_values_have_gradients(job):
    job(HEAD + """
summed = older._c_allreduce(x * 2.0)
gathered = older._c_allgather(x * (rank + 1.0), 2)
scattered = older._c_reducescatter(x * 3.0, 2)
weights = paddle.assign(np.arange(8).reshape(4, 2).astype("float32"))
loss = paddle.sum(summed) * (rank + 1.0) + paddle.sum(gathered * weights) + paddle.sum(scattered) * (rank + 5.0)
gradient, = paddle.static.gradients([loss], [x])
values = run(rank + 1.0, summed, gathered, scattered, gradient)
assert values[:3] == [[[6, 6], [6, 6]], [[1, 1], [1, 1], [4, 4], [4, 4]], [[9, 9]]], values
# Of the sum 2 (1 + 2); of what was gathered both ranks' weights of this rank's rows; of what each rank has
# of the scattered sum 3 times 5 and 6.
own = [[0, 2], [4, 6]] if rank == 0 else [[8, 10], [12, 14]]
expected = np.array([[6 + 15] * 2, [6 + 18] * 2]) + np.array(own) * (rank + 1)
assert np.array_equal(values[3], expected), (values[3], expected)
print("done")
""", 2).succeeded()


def test_a_number_of_ranks_that_the_job_does_not_have_is_named(job):
    result = job(HEAD + """
older._c_allgather(x, 3)
""", 2)
    assert "fluid.layers.collective._c_allgather: nranks=3, and the job has 2" in result.output


def test_passes_over_a_dataset_make_the_calls_in_order(job, tmp_path):
    """Two threads would: as many batches for each rank, and other sums."""
    for part in range(4):
        lines = "".join(f"2 {part * 50 + line} 0\n" for line in range(50))
        (tmp_path / f"part-{part}").write_text(lines)
    result = job(HEAD + f"""
data = paddle.static.data("data", [None, 2], "float32")
summed = older._c_allreduce(paddle.sum(data))
dataset = dist.QueueDataset()
dataset.init(batch_size=1, thread_num=2, use_var=[data], pipe_command="cat")
dataset.set_filelist([f"{tmp_path}/part-{{2 * rank + part}}" for part in range(2)])
exe.run(paddle.static.default_startup_program())
exe.infer_from_dataset(dataset=dataset, fetch_list=[summed], fetch_info=["sum"], print_period=1)
print("done")
""", 2)
    result.succeeded()
    sums = [float(found) for found in re.findall(r"sum\[1\]:\[([\d.]+)\]", result.logs[0])]
    assert sorted(sums) == [2.0 * line + 100 for line in range(100)], result.logs[0][-800:]
    assert result.logs[0].count("takes one thread: the program calls other ranks") == 1


def test_replicas_of_a_program_that_calls_ranks_are_refused(job):
    result = job(HEAD + """
older._c_allreduce(paddle.mean(x))
program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(places=fluid.cpu_places(2))
exe.run(program, feed={"x": np.ones((4, 2), "float32")})
""", 2)
    assert "2 replicas of a program that calls other ranks" in result.output
