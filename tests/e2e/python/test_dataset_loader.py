"""DataLoader.from_dataset: the batches of a dataset, fed one by one."""

HEAD = """
import numpy as np
import fleetrun as paddle
paddle.enable_static()
"""


def test_batches_of_a_dataset_in_a_loop(run):
    run(HEAD + """
open("part", "w").write("".join(f"1 {i} 2 {i}.5 -{i} {i % 3 + 1} {' '.join(map(str, range(i % 3 + 1)))}\\n" for i in range(7)))
label = paddle.static.data("label", [None, 1], "int64")
x = paddle.static.data("x", [None, 2])
ids = paddle.static.data("ids", [None, 1], "int64", lod_level=1)
total = paddle.sum(x) + paddle.sum(paddle.cast(paddle.static.nn.sequence_pool(paddle.cast(ids, "float32"), "sum"), "float32"))
exe = paddle.static.Executor()
for kind in (paddle.distributed.QueueDataset, paddle.distributed.InMemoryDataset):
    for drop_last, sizes in ((True, [3, 3]), (False, [3, 3, 1])):
        dataset = kind()
        dataset.init(batch_size=3, use_var=[label, x, ids])
        dataset.set_filelist(["part"])
        if kind is paddle.distributed.InMemoryDataset:
            dataset.load_into_memory()
        loader = paddle.io.DataLoader.from_dataset(dataset, paddle.static.cpu_places(1), drop_last=drop_last)
        for _ in range(2):  # a pass, and another
            found = [batch[0] for batch in loader()]
            assert [len(batch["label"]) for batch in found] == sizes
            assert [batch["x"].shape for batch in found] == [(size, 2) for size in sizes]
            assert found[0]["label"].ravel().tolist() == [0, 1, 2] and found[1]["x"][0].tolist() == [3.5, -3.0]
            assert found[0]["ids"].lod() == [[0, 1, 3, 6]]
            got = [float(exe.run(feed=batch, fetch_list=[total])[0]) for batch in loader()]
            assert got[0] == 1.5 + 4, got  # halves, and 0 + (0 + 1) + (0 + 1 + 2)
        pairs = paddle.io.DataLoader.from_dataset(dataset, paddle.static.cpu_places(2), drop_last=drop_last)
        assert [[len(feed["x"]) for feed in step] for step in pairs] == [sizes[:2], sizes[2:]][:len(sizes) - 1]
        for batch in loader:  # left early, and begun anew
            break
        assert len(list(loader)) == len(sizes)
""")
