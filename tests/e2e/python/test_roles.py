"""Who a process is: the environment contract and the role makers, and the strategy."""

import pytest

PRINT_ROLE = """
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
try:
    fleet.init(is_collective=%s)
    print(fleet.is_server(), fleet.is_worker(), fleet.worker_num(), fleet.server_num(),
          fleet.server_index() if fleet.is_server() else fleet.worker_index(), fleet.is_first_worker(),
          fleet.server_endpoints(to_string=True))
except paddle.Error as error:
    print(error)
"""
SERVERS = "127.0.0.1:6001,127.0.0.1:6002"
TRAINER = {"PADDLE_PSERVERS_IP_PORT_LIST": SERVERS, "PADDLE_TRAINERS_NUM": "2", "TRAINING_ROLE": "TRAINER",
           "PADDLE_TRAINER_ID": "1"}
# What clusters of Paddle 1.5 say.
OLDER = {"PADDLE_PSERVERS": "127.0.0.1,127.0.0.2", "PADDLE_TRAINERS_NUM": "2"}
OLDER_SERVERS = "127.0.0.1:6174,127.0.0.2:6174"
SERVER = {"PADDLE_PSERVERS_IP_PORT_LIST": SERVERS, "PADDLE_TRAINERS_NUM": "2", "TRAINING_ROLE": "PSERVER",
          "POD_IP": "127.0.0.1", "PADDLE_PORT": "6002"}


@pytest.mark.parametrize("variables, expected", [
    ({}, "False True 1 0 0 True "),
    (TRAINER, f"False True 2 2 1 False {SERVERS}"),
    (SERVER, f"True False 2 2 1 False {SERVERS}"),
    (OLDER | {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "1"},
     f"False True 2 2 1 False {OLDER_SERVERS}"),
    (OLDER | {"TRAINING_ROLE": "PSERVER", "POD_IP": "127.0.0.2"}, f"True False 2 2 1 False {OLDER_SERVERS}"),
    (OLDER | {"TRAINING_ROLE": "PSERVER", "POD_IP": "127.0.0.1", "PADDLE_PORT": "7000"},
     "True False 2 2 0 False 127.0.0.1:7000,127.0.0.2:7000"),
])
def test_the_environment_says_who_a_process_is(run, variables, expected):
    assert run(PRINT_ROLE % False, **variables).stdout == expected + "\n"


@pytest.mark.parametrize("variables, what, hint", [
    ({**TRAINER, "PADDLE_TRAINER_ID": ""},
     "PADDLE_TRAINER_ID is not set, but PADDLE_PSERVERS_IP_PORT_LIST is",
     "start the script with fleetrun"),
    ({**TRAINER, "PADDLE_TRAINERS_NUM": ""}, "PADDLE_TRAINERS_NUM is not set",
     "start the script with fleetrun"),
    ({**TRAINER, "TRAINING_ROLE": ""}, "TRAINING_ROLE is not set", "start the script with fleetrun"),
    ({**TRAINER, "TRAINING_ROLE": "BOSS"}, "TRAINING_ROLE=BOSS is not a role",
     "set it to TRAINER or PSERVER"),
    ({**TRAINER, "PADDLE_TRAINER_ID": "2"}, "PADDLE_TRAINER_ID=2, but PADDLE_TRAINERS_NUM=2", "count from 0"),
    ({**TRAINER, "PADDLE_TRAINER_ID": "one"}, 'PADDLE_TRAINER_ID="one" is not a number', ""),
    ({**OLDER, "TRAINING_ROLE": "PSERVER", "POD_IP": "127.0.0.3"},
     "POD_IP:PADDLE_PORT=127.0.0.3:6174 is not one of PADDLE_PSERVERS=", "spelled the same"),
    ({**OLDER, "PADDLE_TRAINER_ID": "0"}, "TRAINING_ROLE is not set, but PADDLE_PSERVERS is", "fleetrun"),
    ({**SERVER, "PADDLE_PORT": "6003"}, "POD_IP:PADDLE_PORT=127.0.0.1:6003 is not one of",
     "spelled the same"),
    ({"TRAINING_ROLE": "PSERVER"}, "TRAINING_ROLE=PSERVER, but PADDLE_PSERVERS_IP_PORT_LIST is not set",
     "IP:PORT"),
    ({"PADDLE_TRAINERS_NUM": "2", "PADDLE_TRAINER_ID": "0"}, "PADDLE_TRAINERS_NUM=2, but PADDLE_PSERVERS",
     "fleetrun --server_num=1"),
    ({**TRAINER, "PADDLE_PSERVERS_IP_PORT_LIST": "localhost"}, 'server endpoint "localhost" is not HOST:PORT',
     ""),
])
def test_a_missing_or_contradictory_variable_is_named(run, variables, what, hint):
    said = run(PRINT_ROLE % False, **variables).stdout
    assert what in said and hint in said


def test_a_collective_trainer_alone_meets_nobody(run):
    assert run(PRINT_ROLE % True, PADDLE_TRAINERS_NUM=1,
               PADDLE_TRAINER_ID=0).stdout == "False True 1 0 0 True \n"


JOINS = "import fleetrun.distributed as dist\ndist.init_parallel_env()\n"


@pytest.mark.parametrize("script", [JOINS, PRINT_ROLE % True, PRINT_ROLE % False])
@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"])
def test_one_of_several_processes_that_trains_alone_says_so(run, script, name):
    """mpirun -np 2 python train.py"""
    said = run(script, **{name: 2}).stderr
    assert said.count(f"one of several ({name} is 2) and trains alone") == 1
    assert "trains alone" not in run(script, **{name: 1}).stderr
    assert "trains alone" not in run(script, **{name: 2}, WORLD_SIZE=1, RANK=0).stderr
    # fleetrun mpirun -np 2 python train.py
    said = run(script, **{name: 2}, WORLD_SIZE=1, RANK=0, FLEETRUN_RANK=0).stderr
    assert said.count("trains alone") == (0 if name.startswith("SLURM") else 1)


def test_collective_trainers_are_those_whose_endpoints_are_named(run):
    code = """
from fleetrun.distributed.fleet import PaddleCloudRoleMaker
import fleetrun as paddle
role = PaddleCloudRoleMaker(is_collective=True)
try:
    print(role._worker_num(), role._worker_index())
except paddle.Error as error:
    print(error)
"""
    three = {"PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", "PADDLE_TRAINER_ID": "2"}
    assert run(code, **three).stdout == "3 2\n"
    assert "PADDLE_TRAINERS_NUM=2, but PADDLE_TRAINER_ENDPOINTS names 3" in \
        run(code, **three, PADDLE_TRAINERS_NUM=2).stdout


def test_a_collective_role_of_the_script_s_own_agrees_with_the_environment(run):
    said = run("""
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
try:
    fleet.init(fleet.UserDefinedRoleMaker(is_collective=True, current_id=1, worker_num=2))
except paddle.Error as error:
    print(error)
""").stdout
    assert "the role maker says trainer 1 of 2, the environment rank 0 of 1" in said and "hint: " in said


def test_trainers_whose_addresses_nobody_says_cannot_wait_for_each_other(run):
    said = run("""
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
fleet.init(fleet.UserDefinedRoleMaker(current_id=0, role=fleet.Role.WORKER, worker_num=2,
                                      server_endpoints=["127.0.0.1:6174"]))
try:
    fleet.barrier_worker()
except paddle.Error as error:
    print(error)
""").stdout
    assert "the role maker says trainer 0 of 2, the environment rank 0 of 1" in said
    assert "worker_endpoints" in said


def test_a_script_may_say_who_it_is(run):
    done = run("""
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
from fleetrun.distributed.fleet.base.role_maker import Role
fleet.init(fleet.UserDefinedRoleMaker(current_id=1, role=Role.SERVER, worker_num=3,
                                      server_endpoints=["127.0.0.1:36011", "127.0.0.1:36012"]))
print(fleet.is_server(), fleet.server_index(), fleet.worker_num())
for arguments in ({}, {"current_id": 0}, {"current_id": 0, "role": Role.WORKER},
                  {"current_id": 2, "role": Role.SERVER, "worker_num": 1, "server_endpoints": ["a:1"]}):
    try:
        fleet.init(fleet.UserDefinedRoleMaker(**arguments))
    except paddle.Error as error:
        print(error.what)
""")
    assert done.stdout.splitlines() == [
        "True 1 3",
        "UserDefinedRoleMaker: current_id is not given",
        "UserDefinedRoleMaker: role=None is not a role",
        "UserDefinedRoleMaker: neither worker_num nor worker_endpoints is given",
        "UserDefinedRoleMaker: server 2, but 1 server_endpoints",
    ]


def test_files_are_shared_out_in_contiguous_parts(run):
    code = """
import fleetrun.distributed.fleet as fleet
fleet.init()
print(*fleet.util.get_file_shard(list("abcde")), "|", *fleet.util.get_file_shard(["x"]))
"""
    shards = [run(code, **{**TRAINER, "PADDLE_TRAINER_ID": str(rank)}).stdout for rank in range(2)]
    assert shards == ["a b c | x\n", "d e |\n"]
    assert run(code, **SERVER).stdout == "|\n"


def test_a_strategy_takes_what_is_documented_and_names_the_rest(run):
    done = run("""
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
strategy = fleet.DistributedStrategy()
strategy.a_sync = False
strategy.a_sync_configs = {"launch_barrier": False, "k_steps": -1}
print(strategy.a_sync, strategy.a_sync_configs["launch_barrier"], strategy.a_sync_configs["send_queue_size"])
for change in (lambda: setattr(strategy, "asp", True), lambda: strategy.a_sinc, lambda: setattr(strategy, "a_sync", 1),
               lambda: setattr(strategy, "a_sync_configs", {"k_step": 100})):
    try:
        change()
    except (AttributeError, paddle.Error) as error:
        print(str(error).splitlines()[0])
""")
    owner = "paddle.distributed.fleet.DistributedStrategy"
    assert done.stdout.splitlines() == [
        "False False 16",
        "DistributedStrategy.asp = True: parameters are not pruned",
        f"fleetrun has no {owner}.a_sinc; did you mean {owner}.a_sync?",
        "DistributedStrategy.a_sync = 1 is not True or False",
        "fleetrun has no DistributedStrategy.a_sync_configs.k_step; did you mean "
        "DistributedStrategy.a_sync_configs.k_steps?",
    ]


def test_the_place_among_hosts(run):
    done = run("""
import fleetrun.distributed.fleet as fleet
fleet.init(fleet.UserDefinedRoleMaker(current_id=2, role=fleet.Role.WORKER, server_endpoints=["10.0.0.1:7000"],
                                      worker_endpoints=["10.0.0.1:7001", "10.0.0.1:7002", "10.0.0.2:7001"]))
print(fleet.worker_num(), fleet.nranks(), fleet.rank(), fleet.local_rank(), fleet.node_num(), fleet.is_coordinator())
""", PADDLE_LOCAL_RANK=0)
    assert done.stdout == "3 3 2 0 2 False\n"


def test_a_role_maker_reaches_the_other_trainers_through_fleet(run):
    done = run("""
import numpy as np
import fleetrun.distributed.fleet as fleet
role = fleet.PaddleCloudRoleMaker()
role._barrier()
print(role._all_gather(3), role._all_reduce([1, 2]))
fleet.init(role)
role._barrier()
total = np.zeros(2)
role.all_reduce_worker(np.array([1.0, 2.0]), total)
print(role._all_gather(3), role._all_reduce([1, 2]), total)
""")
    assert done.stdout.splitlines() == ["3 [1, 2]", "[3] [1, 2] [1. 2.]"]
    assert done.stderr == ("fleetrun: warning: PaddleCloudRoleMaker reaches no other trainer before "
                           "fleet.init(role_maker): what it reduces or gathers is this process's own, "
                           "as in Paddle\n")


def test_a_role_maker_finds_its_role_when_it_is_asked(run):
    done = run("""
import os
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
from fleetrun.distributed.fleet.base import role_maker
role = role_maker.PaddleCloudRoleMaker()
print(role.to_string())
os.environ["TRAINING_ROLE"] = "TEST"
for ask in (role._generate_role, role._is_server, lambda: fleet.init(role)):
    try:
        ask()
    except ValueError as error:
        print(type(error) is not paddle.Error and isinstance(error, paddle.Error), error.what)
os.environ["TRAINING_ROLE"] = "TRAINER"
print(role._worker_num(), role._role_id(), role._server_num(), role._is_first_worker(), role._get_pserver_endpoints(),
      role._node_num(), role._heter_worker_num(), role._is_heter_worker(), role._is_non_distributed())
os.environ["PADDLE_TRAINERS_NUM"] = "5"
print(role._worker_num(), role.to_string())
base = role_maker.RoleMakerBase()
print(base._get_trainer_endpoints(), base._all_gather(1, "worker"), base._all_reduce(1), base._barrier("worker"))
for ask in (base._is_worker, base._worker_num, base._node_num, lambda: fleet.init(base)):
    try:
        ask()
    except paddle.Error as error:
        print(error.what)
""", **TRAINER)
    no_role = "RoleMakerBase does not say which role this process has"
    assert done.stdout.splitlines() == [
        "role: None, current_id: -1, worker_endpoints: [], server_endpoints: []",
        *["True TRAINING_ROLE=TEST is not a role"] * 3,
        "2 1 2 False ['127.0.0.1:6001', '127.0.0.1:6002'] 1 0 False False",
        "2 role: 1, current_id: 1, worker_endpoints: [], "
        "server_endpoints: ['127.0.0.1:6001', '127.0.0.1:6002']",
        "[] None None None",
        *[no_role] * 4,
    ]


def test_a_role_maker_may_answer_only_what_paddle_asks(run):
    done = run("""
import fleetrun.distributed.fleet as fleet
from fleetrun.distributed.fleet.base import role_maker
class Mine(role_maker.RoleMakerBase):
    _is_worker = lambda self: True
    _is_server = lambda self: False
    _worker_num = lambda self: 2
    _role_id = _worker_index = lambda self: 1
    _get_pserver_endpoints = lambda self: ["127.0.0.1:6001"]
fleet.init(Mine())
print(fleet.worker_index(), fleet.worker_num(), fleet.server_endpoints(), fleet.is_first_worker())
""")
    assert done.stdout == "1 2 ['127.0.0.1:6001'] False\n"


def test_role_makers_of_older_fleets_take_what_they_took(run):
    done = run("""
import os
import fleetrun.distributed.fleet as fleet
from fleetrun.fluid.incubate.fleet.base import role_maker
role = role_maker.UserDefinedRoleMaker(1, role_maker.Role.SERVER, 3, ["127.0.0.1:1", "127.0.0.1:2"])
fleet.init(role)
print(fleet.is_server(), role.server_index(), role.worker_num(), role.get_pserver_endpoints())
role = role_maker.GeneralRoleMaker(path="./here", http_ip_port="127.0.0.1:9")
role.generate_role()
print(role.is_server(), role.server_index(), role.worker_num())
try:
    role_maker.MPISymetricRoleMaker()
except ImportError as error:
    print(error)
""", PADDLE_PSERVERS_IP_PORT_LIST=SERVERS, TRAINING_ROLE="PSERVER", PADDLE_PSERVER_ID=1,
               PADDLE_TRAINER_ENDPOINTS="127.0.0.1:1,127.0.0.1:2,127.0.0.1:3")
    assert done.stdout.splitlines() == [
        "True 1 3 ['127.0.0.1:1', '127.0.0.1:2']",
        "True 1 3",
        "MPISymetricRoleMaker: jobs are not started by MPI here; start the script with fleetrun "
        "--server_num=… --trainer_num=…, and use PaddleCloudRoleMaker()",
    ]


def test_how_much_fleet_says_is_a_level_of_logging(run, package):
    done = run("""
import paddle.distributed.fleet as fleet
from paddle.distributed.fleet.utils.log_util import logger
fleet.set_log_level("debug")
print(fleet.get_log_level_code(), fleet.get_log_level_name(), logger.level)
fleet.set_log_level(30)
print(fleet.get_log_level_code(), fleet.get_log_level_name())
try:
    fleet.set_log_level(None)
except Exception as error:
    print(str(error).splitlines()[0])
strategy = fleet.DistributedStrategy()
fleet.init(strategy=strategy)
print(fleet._final_strategy() is strategy)
""", PYTHONPATH=f"{package}/_compat")
    assert done.stdout.splitlines() == ["10 DEBUG 10", "30 WARNING", "fleet.set_log_level(None)", "True"]
