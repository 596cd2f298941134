"""Models that find objects in pictures, against what Paddle 1.8.5 gave for the same program and numbers."""

SCRIPT = """
import numpy
import paddle.fluid as fluid

L, place = fluid.layers, fluid.CPUPlace()

def values(seed, shape, scale=1.0):
    return (numpy.sin(seed + 0.7 * numpy.arange(numpy.prod(shape))) * scale).reshape(shape).astype("float32")

image = L.data("image", [3, 32, 32])
box, label = L.data("box", [4], lod_level=1), L.data("label", [1], dtype="int32", lod_level=1)
maps = [L.conv2d(image, 4, 3, stride=4, padding=1, act="relu")]
for _ in range(2):
    maps.append(L.conv2d(maps[-1], 4, 3, stride=2, padding=1, act="relu"))
where, what, boxes, shares = L.multi_box_head(
    maps, image, base_size=32, num_classes=4, min_ratio=20, max_ratio=90,
    aspect_ratios=[[2.0], [2.0, 3.0], [2.0]], kernel_size=3, pad=1)
found = L.detection_output(where, what, boxes, shares, nms_threshold=0.45, keep_top_k=6)
test = fluid.default_main_program().clone(for_test=True)
loss = L.reduce_sum(L.ssd_loss(where, what, box, label, boxes, shares))
fluid.optimizer.SGD(0.01).minimize(loss)
executor = fluid.Executor(place)
executor.run(fluid.default_startup_program())
for i, parameter in enumerate(fluid.default_main_program().global_block().all_parameters()):
    start = values(i, parameter.shape, 0.3)
    fluid.global_scope().find_var(parameter.name).get_tensor().set(start, place)
middles, halves = values(1, [6, 2], 0.3) + 0.5, abs(values(2, [6, 2], 0.2)) + 0.05
truth = numpy.concatenate([middles - halves, middles + halves], 1)
fed = {"image": values(3, [3, 3, 32, 32]),
       "box": fluid.create_lod_tensor(truth, [[2, 1, 3]], place),
       "label": fluid.create_lod_tensor(numpy.array([[1, 3, 2, 1, 2, 3]], "int32").T, [[2, 1, 3]], place)}
for step in range(3):
    print("loss %.4f" % float(executor.run(feed=fed, fetch_list=[loss])[0].reshape(-1)[0]))

def show(best):
    rows = numpy.array(best)
    print(best.lod(), rows.shape, *(" ".join("%.2f" % one for one in row) for row in rows[::5]), sep="; ")

picture = {"image": values(5, [2, 3, 32, 32])}
show(executor.run(test, feed=picture, fetch_list=[found], return_numpy=False)[0])
fluid.io.save_inference_model("model", ["image"], [found], executor, main_program=test)
with fluid.scope_guard(fluid.Scope()):
    program, _, fetched = fluid.io.load_inference_model("model", executor)
    show(executor.run(program, feed=picture, fetch_list=fetched, return_numpy=False)[0])

with fluid.program_guard(fluid.Program()):
    rows = L.data("rows", [1, 1], dtype="int32", lod_level=1)
    pairs = L.data("pairs", [3], dtype="int32")
    negatives = L.data("negatives", [1], dtype="int32", lod_level=1)
    fed = {"rows": fluid.create_lod_tensor(numpy.arange(5, dtype="int32").reshape(5, 1, 1), [[3, 2]], place),
           "pairs": numpy.array([[2, -1, 0], [-1, 1, -1]], "int32"),
           "negatives": fluid.create_lod_tensor(numpy.array([[1], [0]], "int32"), [[1, 1]], place)}
    fetched = list(L.target_assign(rows, pairs, negatives, 7))
    block = fluid.default_main_program().current_block()
    fetched += [block.create_var(dtype="int32"), block.create_var(dtype="float32")]
    block.append_op(type="target_assign", inputs={"X": rows, "MatchIndices": pairs},
                    attrs={"mismatch_value": 9}, outputs={"Out": fetched[2], "OutWeight": fetched[3]})
    for one in fluid.Executor(place).run(fluid.default_main_program(), feed=fed, fetch_list=fetched):
        print(one.ravel().tolist())
"""


def test_objects_are_learnt_and_found_as_paddle_does(run, package):
    said = run(SCRIPT, PYTHONPATH=package + "/_compat").stdout.splitlines()
    best = ("[[0, 6, 12]]; (12, 6); 3.00 0.37 -0.01 -0.01 0.07 0.07; 3.00 0.34 0.12 0.74 0.22 0.84; "
            "3.00 0.35 0.24 -0.01 0.34 0.09")
    assert said == [
        "loss 13.8659", "loss 13.4683", "loss 13.1626", best, best, "[2, 7, 0, 7, 4, 7]",
        "[1.0, 1.0, 1.0, 1.0, 1.0, 0.0]", "[2, 9, 0, 9, 4, 9]", "[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]",
    ]  # fmt: skip


def test_boxes_that_do_not_fit_are_refused(run, package):
    said = run("""
import numpy
import paddle.fluid as fluid

L = fluid.layers
map_, image = fluid.data("map", [1, 2, 2, 2]), fluid.data("image", [1, 3, 8, 8])
boxes, scores = fluid.data("boxes", [None, None, 4]), fluid.data("scores", [None, 2, None])
found = L.multiclass_nms(boxes, scores, 0.1, 10, 10)
fed = {"boxes": numpy.zeros((1, 3, 4), "float32"), "scores": numpy.ones((1, 2, 4), "float32")}
for wrong in (
    lambda: L.prior_box(map_, image, [4.0, 5.0], [8.0]),
    lambda: L.prior_box(map_, image, [4.0], variance=[0.1]),
    lambda: L.target_assign(boxes, fluid.data("pairs", [None, 3], "int32")),
    lambda: fluid.Executor().run(feed=fed, fetch_list=[found]),
):
    try:
        wrong()
    except Exception as error:
        print(str(error).splitlines()[0])
""", PYTHONPATH=package + "/_compat").stdout.splitlines()  # fmt: skip
    assert said == [
        "prior_box: max_sizes are not as many as min_sizes: map float32 [1, 2, 2, 2], "
        "image float32 [1, 3, 8, 8]",
        "prior_box: variances are not four: map float32 [1, 2, 2, 2], image float32 [1, 3, 8, 8]",
        "target_assign: the values are not those of pictures: boxes float32 [-1, -1, 4], pairs int32 [-1, 3]",
        "multiclass_nms(boxes, scores): the tensor of boxes is [1, 3, 4], and 16 values are needed",
    ]
