"""What `fleetrun k8s` prints is what Kubernetes takes.

The published schemas are those of the kubeflow-trainer-api package (Apache License 2.0): models made from the
OpenAPI documents of Kubernetes (batch/v1, core/v1) and of JobSet (v1alpha2). A manifest that comes back from
its model whole has no field that the schema does not know, and no value of another type;
the model only adds what is there by default.
"""

import base64
import subprocess

import pytest

from fleetrun_job import DEADLINE, clean_environment, find_fleetrun

yaml = pytest.importorskip("yaml")
models = pytest.importorskip("kubeflow_trainer_api.models")

KINDS = {
    "Secret": models.IoK8sApiCoreV1Secret,
    "Service": models.IoK8sApiCoreV1Service,
    "Job": models.IoK8sApiBatchV1Job,
    "JobSet": models.JobsetV1alpha2JobSet,
}


def run(*arguments):
    return subprocess.run([find_fleetrun(), "k8s", *arguments], capture_output=True, text=True,
                          errors="replace", timeout=DEADLINE,
                          env=clean_environment())


def manifests(*arguments):
    """{kind: manifest} of a launch, each checked against its schema."""
    done = run("--image=registry/train:1", *arguments)
    assert done.returncode == 0, done.stderr
    found = {}
    for manifest in yaml.safe_load_all(done.stdout):
        assert holds(KINDS[manifest["kind"]].from_dict(manifest).to_dict(), manifest)
        found[manifest["kind"]] = manifest
    return found


def holds(whole, part):
    """Whether `whole` is `part`, and perhaps more."""
    if isinstance(part, dict):
        return (isinstance(whole, dict) and all(key in whole and holds(whole[key], value)
                                                for key, value in part.items()))
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(holds, whole, part))
    return whole == part and type(whole) is type(part)


def container(job):
    (only,) = job["template"]["spec"]["containers"]
    return only


LAUNCHES = [
    ["train.py"],
    ["--nodes=4", "--gpus_per_node=8", "--cpu=8", "--memory=64Gi", "--namespace=team", "train.py"],
    ["--nnodes=2:8:2", "--max_restart=3", "train.py"],
    ["--kind=jobset", "--nodes=3", "train.py"],
    ["--kind=jobset", "--nodes=3", "--server_nodes=2", "--server_num=1", "--trainer_num=2", "train.py"],
    ["--secret_name=mine", "--port=7000", "train.py"],
]


@pytest.mark.parametrize("launch", LAUNCHES, ids=" ".join)
def test_manifests_are_valid(launch):
    kinds = set(manifests(*launch))
    assert kinds == ({"JobSet"} if "--kind=jobset" in launch
                     else {"Service", "Job"}) | (set() if "--secret_name=mine" in launch else {"Secret"})


def test_an_unknown_field_would_be_found():
    manifest = manifests("train.py")["Job"]
    manifest["spec"]["completionz"] = 1
    assert not holds(KINDS["Job"].from_dict(manifest).to_dict(), manifest)
    del manifest["spec"]["completionz"]
    manifest["spec"]["completions"] = "4"
    with pytest.raises(ValueError):
        KINDS["Job"].from_dict(manifest)


def test_every_pod_is_a_fleetrun_that_knows_where_to_meet():
    found = manifests("--nodes=4", "--name=train", "--nproc_per_node=2", "train.py", "--epochs=3")
    spec = found["Job"]["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 4, 4)
    pod = spec["template"]["spec"]
    assert pod["subdomain"] == found["Service"]["metadata"]["name"] == "train"
    assert (found["Service"]["spec"]["clusterIP"] == "None"
            and found["Service"]["spec"]["publishNotReadyAddresses"] is True)
    assert found["Service"]["spec"]["selector"].items() <= spec["template"]["metadata"]["labels"].items()
    assert container(spec)["command"] == ["fleetrun"]
    assert container(spec)["args"] == [
        "--nnodes=4", "--master=train-0.train:6768", "--rank=$(JOB_COMPLETION_INDEX)",
        "--secret_file=/etc/fleetrun/secret", "--nproc_per_node=2", "train.py", "--epochs=3",
    ]


def test_the_secret_is_drawn_anew_and_mounted_for_its_owner_alone():
    secrets = [manifests("train.py")["Secret"]["data"]["secret"] for _ in range(2)]
    assert [len(base64.b64decode(secret)) for secret in secrets] == [32, 32]
    assert secrets[0] != secrets[1]
    pod = manifests("train.py")["Job"]["spec"]["template"]["spec"]
    (volume,) = (volume["secret"] for volume in pod["volumes"] if "secret" in volume)
    assert volume == {"secretName": "train-secret", "defaultMode": 0o400}


def test_what_ends_a_pod_decides_whether_another_comes():
    rules = manifests("train.py")["Job"]["spec"]["podFailurePolicy"]["rules"]
    by_codes = {tuple(rule["onExitCodes"]["values"]): rule["action"] for rule in rules
                if "onExitCodes" in rule}
    assert by_codes == {(75,): "Ignore", (125, 126, 127): "FailJob"}
    assert [rule["action"] for rule in rules if "onPodConditions" in rule] == ["Ignore"]


def test_roles_of_a_jobset_are_replicated_jobs():
    spec = manifests("--kind=jobset", "--name=rec", "--nodes=3", "--server_nodes=2", "--server_num=1",
                     "--trainer_num=2", "train.py")["JobSet"]["spec"]
    jobs = {job["name"]: job["template"]["spec"] for job in spec["replicatedJobs"]}
    assert {name: job["completions"] for name, job in jobs.items()} == {"servers": 2, "trainers": 3}
    assert spec["successPolicy"]["targetReplicatedJobs"] == ["trainers"]
    for name, roles in (("servers", ["--server_num=1", "--trainer_num=0"]),
                        ("trainers", ["--server_num=0", "--trainer_num=2"])):
        words = container(jobs[name])["args"]
        assert (words[:2] == ["--nnodes=5", "--master=rec-servers-0-0.rec:6768"]
                and words[-3:] == [*roles, "train.py"])


def test_every_text_of_the_arguments_arrives():
    hostile = ["", "a b", "it's", '"', "\\", "$(HOME)", "$$", "a\nb", "\t\r", "yes", "null", "1e3", "- x",
               "# no", "{a: b}", "ünï\u2028😀", "\x7f\x01", ": "]
    words = container(manifests("train.py", *hostile)["Job"]["spec"])["args"][-len(hostile):]
    # Kubernetes makes $ of $$.
    assert [word.replace("$$", "$") for word in words] == hostile


@pytest.mark.parametrize("arguments, said", [
    (["train.py"], "no image is given"),
    (["--image=x", "--name=Train", "train.py"], "--name is 'Train'"),
    (["--image=x", "--name=on\n", "train.py"], "--name is 'on"),
    (["--image=x", "--kind=pod", "train.py"], "--kind is 'pod': job or jobset is needed"),
    (["--image=x", "--nodes=2", "--nnodes=3", "train.py"], "--nodes is 2, and --nnodes is 3"),
    (["--image=x", "--secret_file=s", "train.py"], "--secret_file is the manifest's to say"),
    (["--image=x", "--nnodes=2", "--rank=1", "train.py"], "--rank is the pod's to say"),
    (["--image=x", "--hosts=a,b", "train.py"], "the hosts of this job are Kubernetes's to give"),
    (["--image=x", "--kind=jobset", "--server_nodes=1", "train.py"], "the job is not a parameter-server job"),
    (["--image=x", "train.py", b"\xff"], "is not UTF-8, and a manifest holds nothing else"),
])
def test_what_kubernetes_would_not_take_is_refused(arguments, said):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (125, "")
    assert said in done.stderr
