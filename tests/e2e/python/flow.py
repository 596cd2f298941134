"""The scripts of document 003, with data made up for them, and a job of one server and two trainers by hand.

`train.py`, `reader.py` and the structure of `model.py` are the document's;
only the imports differ, by IMPORTS.
"""

import random

LIMIT = 120  # seconds that any one process may take; nothing waits for less

IMPORTS = {
    "fleetrun":
    "import fleetrun as paddle\nimport fleetrun.distributed.fleet as fleet\n"
    "import fleetrun.nn.functional as F\n",
    "paddle": "import paddle\nimport paddle.distributed.fleet as fleet\nimport paddle.nn.functional as F\n",
}

MODEL = """
import math

class WideDeepLayer(paddle.nn.Layer):
    def __init__(self, sparse_feature_number, sparse_feature_dim, dense_feature_dim, num_field, layer_sizes):
        super(WideDeepLayer, self).__init__()
        self.sparse_feature_dim = sparse_feature_dim
        self.num_field = num_field
        self.wide_part = paddle.nn.Linear(
            in_features=dense_feature_dim, out_features=1,
            weight_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.TruncatedNormal(mean=0.0, std=0.1)))
        self.embedding = paddle.nn.Embedding(
            sparse_feature_number, sparse_feature_dim, sparse=True,
            weight_attr=paddle.ParamAttr(name="SparseFeatFactors", initializer=paddle.nn.initializer.Uniform(-0.1, 0.1)))
        sizes = [sparse_feature_dim * num_field + dense_feature_dim] + layer_sizes + [1]
        acts = ["relu" for _ in range(len(layer_sizes))] + [None]
        self._mlp_layers = []
        for i in range(len(layer_sizes) + 1):
            linear = paddle.nn.Linear(
                in_features=sizes[i], out_features=sizes[i + 1],
                weight_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.Normal(std=1.0 / math.sqrt(sizes[i]))))
            self.add_sublayer('linear_%d' % i, linear)
            self._mlp_layers.append(linear)
            if acts[i] == 'relu':
                act = paddle.nn.ReLU()
                self.add_sublayer('act_%d' % i, act)
                self._mlp_layers.append(act)

    def forward(self, sparse_inputs, dense_inputs):
        wide_output = self.wide_part(dense_inputs)
        sparse_embs = []
        for s_input in sparse_inputs:
            emb = self.embedding(s_input)
            emb = paddle.reshape(emb, shape=[-1, self.sparse_feature_dim])
            sparse_embs.append(emb)
        deep_output = paddle.concat(x=sparse_embs + [dense_inputs], axis=1)
        for n_layer in self._mlp_layers:
            deep_output = n_layer(deep_output)
        prediction = paddle.add(x=wide_output, y=deep_output)
        return F.sigmoid(prediction)

class WideDeepModel:
    def net(self, is_train=True):
        dense_input = paddle.static.data(name="dense_input", shape=[None, 4], dtype="float32")
        sparse_inputs = [paddle.static.data(name="C" + str(i), shape=[None, 1], dtype="int64") for i in range(1, 4)]
        label_input = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
        self.inputs = [dense_input] + sparse_inputs + [label_input]
        wide_deep_model = WideDeepLayer(1000, 5, 4, 3, [16, 8])
        pred = wide_deep_model.forward(sparse_inputs, dense_input)
        predict_2d = paddle.concat(x=[1 - pred, pred], axis=1)
        label_float = paddle.cast(label_input, dtype="float32")
        cost = paddle.nn.functional.log_loss(input=pred, label=label_float)
        self.loss = paddle.mean(x=cost)
        self.auc, batch_auc, _ = paddle.static.auc(input=predict_2d, label=label_input, num_thresholds=2**12, slide_steps=20)
"""

READER = """
class WideDeepDatasetReader(fleet.MultiSlotDataGenerator):
    def line_process(self, line):
        features = line.rstrip('\\n').split('\\t')
        dense_feature = [float(value) for value in features[1:5]]
        sparse_feature = [[hash_of(value)] for value in features[5:8]]
        label = [int(features[0])]
        return [dense_feature] + sparse_feature + [label]

    def generate_sample(self, line):
        def wd_reader():
            input_data = self.line_process(line)
            feature_name = ["dense_input"]
            for idx in range(1, 4):
                feature_name.append("C" + str(idx))
            feature_name.append("label")
            yield zip(feature_name, input_data)
        return wd_reader

def hash_of(text):
    return int(text, 16) % 1000

if __name__ == "__main__":
    my_data_generator = WideDeepDatasetReader()
    my_data_generator.run_from_stdin()
"""

TRAIN = """
import os
import sys
epochs, a_sync, batch_size = int(sys.argv[1]), sys.argv[2] == "async", 20
train_data_path = "data"
paddle.seed(11)
paddle.enable_static()
fleet.init(is_collective=False)
from model import WideDeepModel
model = WideDeepModel()
model.net(is_train=True)
dataset = paddle.distributed.QueueDataset()
thread_num = 1
dataset.init(use_var=model.inputs,
             pipe_command="python reader.py",
             batch_size=batch_size,
             thread_num=thread_num)
train_files_list = fleet.util.get_file_shard(sorted([os.path.join(train_data_path, x)
                                                     for x in os.listdir(train_data_path)]))
dataset.set_filelist(train_files_list)
dist_strategy = fleet.DistributedStrategy()
dist_strategy.a_sync = a_sync
optimizer = paddle.optimizer.SGD(learning_rate=0.2)
optimizer = fleet.distributed_optimizer(optimizer, dist_strategy)
optimizer.minimize(model.loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    for epoch_id in range(epochs):
        exe.train_from_dataset(paddle.static.default_main_program(),
                               dataset,
                               paddle.static.global_scope(),
                               debug=False,
                               fetch_list=[model.loss, model.auc],
                               fetch_info=["loss", "auc"],
                               print_period=1)
    fleet.barrier_worker()
    AFTER
    fleet.stop_worker()
"""


def write(directory, package="fleetrun", after="pass", lines=200, files=4):
    """Writes model.py, reader.py, train.py and data/; `after` runs in the trainers before stop_worker."""
    for name, text in (("model.py", MODEL), ("reader.py", READER),
                       ("train.py", TRAIN.replace("AFTER", after))):
        (directory / name).write_text(IMPORTS[package] + text, encoding="utf-8")
    (directory / "data").mkdir()
    numbers = random.Random(5)
    for part in range(files):
        text = []
        for _ in range(lines):
            dense = [numbers.gauss(0, 1) for _ in range(4)]
            keys = [numbers.randrange(40) for _ in range(3)]
            label = int(2 * dense[0] - 2 * dense[1] + sum(0.5 if key % 2 else -0.5 for key in keys) > 0)
            text.append("\t".join([str(label), *(f"{value:.3f}" for value in dense),
                                   *(f"{key:x}" for key in keys)]))
        (directory / "data" / f"part{part}").write_text("\n".join(text) + "\n", encoding="utf-8")


def servers_environment(port, trainers=2):
    """What every process of a job with one server on `port` gets."""
    return {"PADDLE_PSERVERS_IP_PORT_LIST": f"127.0.0.1:{port}", "PADDLE_TRAINERS_NUM": str(trainers)}


def server_environment(port, trainers=2):
    """What the server gets."""
    return {**servers_environment(port, trainers), "TRAINING_ROLE": "PSERVER", "POD_IP": "127.0.0.1",
            "PADDLE_PORT": str(port)}


def trainer_environment(port, rank, trainers=2):
    """What trainer `rank` gets."""
    return {**servers_environment(port, trainers), "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(rank)}
