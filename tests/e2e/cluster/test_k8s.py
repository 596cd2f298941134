"""What `fleetrun k8s` prints is what Kubernetes takes.

The published schemas are those of the kubeflow-trainer-api package (Apache License 2.0): models made from the
OpenAPI documents of Kubernetes (batch/v1, core/v1) and of JobSet (v1alpha2). A manifest that comes back from
its model whole has no field that the schema does not know, and no value of another type;
the model only adds what is there by default.

Where the package kubernetes-validate is installed, the strict schemas of three versions of Kubernetes are
asked, too; and where KUBERNETES_CRDS names a folder, the CustomResourceDefinitions in its *.yaml, as JobSet
and Kubeflow Trainer publish them.
"""

import base64
import functools
import os
import pathlib
import re
import subprocess
import sys

import pytest

from fleetrun_job import DEADLINE, ROOT, clean_environment, find_fleetrun

sys.path.insert(0, str(ROOT / "scripts"))

import image_package  # noqa: E402

yaml = pytest.importorskip("yaml")
models = pytest.importorskip("kubeflow_trainer_api.models")

KINDS = {
    "Secret": models.IoK8sApiCoreV1Secret,
    "Service": models.IoK8sApiCoreV1Service,
    "Job": models.IoK8sApiBatchV1Job,
    "JobSet": models.JobsetV1alpha2JobSet,
    "TrainingRuntime": models.TrainerV1alpha1TrainingRuntime,
    "TrainJob": models.TrainerV1alpha1TrainJob,
}
VERSIONS = ["1.29", "1.33", "1.37"]  # of Kubernetes


def run(*arguments):
    return subprocess.run([find_fleetrun(), "k8s", *arguments], capture_output=True, text=True,
                          errors="replace", timeout=DEADLINE,
                          env=clean_environment())


def manifests(*arguments):
    """{kind: manifest} of a launch, each checked against its schema."""
    done = run("--image=registry/train:1", *arguments)
    assert done.returncode == 0, done.stderr
    found = {manifest["kind"]: manifest for manifest in yaml.safe_load_all(done.stdout)}
    for kind, manifest in found.items():
        if kind in KINDS:  # the package has no model of a PodDisruptionBudget
            assert holds(KINDS[kind].from_dict(manifest).to_dict(), manifest)
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


EVERYTHING = [
    "--nodes=4", "--namespace=team", "--gpus_per_node=8", "--gpu_resource=amd.com/gpu",
    "--resource=rdma/ib=1", "--cpu=8", "--memory=64Gi", "--shared_memory=16Gi", "--env=NCCL_DEBUG=INFO",
    "--env=EMPTY=",
    "--env_from=secret:keys", "--env_from=configmap:settings", "--volume=pvc:data:/data:ro",
    "--volume=configmap:tables:/tables", "--volume=secret:keys:/keys", "--volume=empty:10Gi:/scratch",
    "--image_pull_secret=registry", "--image_pull_policy=Always", "--service_account=trainer",
    "--node_selector=example.com/pool=train", "--toleration=nvidia.com/gpu:NoSchedule",
    "--toleration=team=ads",
    "--spread=topology.kubernetes.io/zone", "--spread=kubernetes.io/hostname:must", "--priority_class=high",
    "--scheduler=volcano", "--queue=team", "--disruption_budget", "--metrics_port=9400", "--label=team=ads",
    "--annotation=example.com/note=a b",
]
LAUNCHES = [
    [*EVERYTHING, "--remove_after=3600", "train.py"],
    [*EVERYTHING, "--remove_after=3600", "--kind=jobset", "train.py"],
    [*EVERYTHING, "--kind=trainjob", "train.py"],
    ["--kind=trainjob", "--nnodes=2:4", "train.py"],
    ["train.py"],
    ["--nodes=4", "--gpus_per_node=8", "--cpu=8", "--memory=64Gi", "--namespace=team", "train.py"],
    ["--nnodes=2:8:2", "--max_restart=3", "train.py"],
    ["--kind=jobset", "--nodes=3", "train.py"],
    ["--kind=jobset", "--nodes=3", "--server_nodes=2", "--server_num=1", "--trainer_num=2", "train.py"],
    ["--secret_name=mine", "--port=7000", "train.py"],
]


def launch_name(launch):
    return " ".join(word for word in launch if word not in EVERYTHING)


each_launch = pytest.mark.parametrize("launch", LAUNCHES, ids=launch_name)


@each_launch
def test_manifests_are_valid(launch):
    kinds = set(manifests(*launch))
    made = {"--kind=jobset": {"JobSet"}, "--kind=trainjob": {"TrainingRuntime", "TrainJob"}}
    (kind,) = [made[word] for word in launch if word in made] or [{"Service", "Job"}]
    assert kinds == (kind | (set() if "--secret_name=mine" in launch else {"Secret"})
                     | ({"PodDisruptionBudget"} if "--disruption_budget" in launch else set()))


@each_launch
@pytest.mark.parametrize("version", VERSIONS)
def test_three_versions_of_kubernetes_take_them(launch, version):
    validator = pytest.importorskip("kubernetes_validate")
    for kind, manifest in manifests(*launch).items():
        if kind in ("Secret", "Service", "Job", "PodDisruptionBudget"):
            validator.validate(manifest, version, strict=True)
        for template in pod_templates(manifest):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", **template["metadata"]},
                   "spec": template["spec"]}
            validator.validate(pod, version, strict=True)


@functools.cache
def definitions():
    """[(file, kind, version, schema)] of the definitions in $KUBERNETES_CRDS."""
    found = []
    for path in sorted(pathlib.Path(os.environ.get("KUBERNETES_CRDS", "/nowhere")).rglob("*.yaml")):
        for crd in yaml.load_all(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            spec = crd["spec"]
            found += [(str(path), spec["names"]["kind"], f"{spec['group']}/{v['name']}",
                       v["schema"]["openAPIV3Schema"]) for v in spec["versions"]]
    return found


@each_launch
def test_custom_resource_definitions_take_them(launch):
    known = definitions()
    if not known:
        pytest.skip("KUBERNETES_CRDS names no folder with definitions")
    for kind, manifest in manifests(*launch).items():
        for path, its_kind, version, schema in known:
            if its_kind == kind:
                assert manifest["apiVersion"] == version
                assert not list(mistakes(manifest, schema, kind)), path


def mistakes(value, schema, place):
    """What a structural schema of Kubernetes does not take; unknown fields are mistakes, too."""
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
             "number": (int, float)}
    if schema.get("x-kubernetes-int-or-string"):
        if type(value) not in (int, str):
            yield f"{place}: neither a number nor a text"
    elif "type" in schema and (not isinstance(value, kinds[schema["type"]])
                               or (isinstance(value, bool) and schema["type"] != "boolean")):
        yield f"{place}: no {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: none of {schema['enum']}"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{place}: not like {schema['pattern']}"
    if isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{place}: too small or too large"
    for number, item in enumerate(value if isinstance(value, list) else []):
        yield from mistakes(item, schema["items"], f"{place}[{number}]")
    for key, item in value.items() if isinstance(value, dict) else []:
        yield from field_mistakes(key, item, schema, place)
    for key in schema.get("required", []) if isinstance(value, dict) else []:
        if key not in value:
            yield f"{place}: no {key}"


def field_mistakes(key, item, schema, place):
    rest = schema.get("additionalProperties")
    if key in schema.get("properties", {}):
        yield from mistakes(item, schema["properties"][key], f"{place}.{key}")
    elif isinstance(rest, dict):
        yield from mistakes(item, rest, f"{place}.{key}")
    elif not rest and not schema.get("x-kubernetes-preserve-unknown-fields") \
            and not place.endswith(".metadata"):  # which the API itself knows
        yield f"{place}: unknown field {key}"


def pod_templates(manifest):
    """The pod templates in a manifest, wherever they stand."""
    if isinstance(manifest, list):
        return [found for item in manifest for found in pod_templates(item)]
    if not isinstance(manifest, dict):
        return []
    if "containers" in manifest.get("spec", {}):
        return [manifest]
    return [found for item in manifest.values() for found in pod_templates(item)]


def violations(pod):
    """What Pod Security "restricted" finds wrong, by its published list of controls."""
    spec = pod["spec"]
    of_pod = spec.get("securityContext", {})
    for name in ("hostNetwork", "hostPID", "hostIPC", "hostUsers"):
        if spec.get(name):
            yield name
    if of_pod.get("sysctls") or of_pod.get("seLinuxOptions") or of_pod.get("windowsOptions"):
        yield "options of the node"
    allowed = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
               "projected", "secret"}
    for volume in spec.get("volumes", []):
        if not set(volume) - {"name"} <= allowed:
            yield f"volume {volume}"
    for container in spec["containers"] + spec.get("initContainers", []):
        own = container.get("securityContext", {})
        if own.get("privileged") or own.get("procMount", "Default") != "Default":
            yield "privileged"
        if own.get("allowPrivilegeEscalation") is not False:
            yield "allowPrivilegeEscalation"
        if own.get("capabilities", {}).get("drop") != ["ALL"]:
            yield "capabilities.drop"
        if set(own.get("capabilities", {}).get("add", [])) - {"NET_BIND_SERVICE"}:
            yield "capabilities.add"
        if own.get("runAsNonRoot", of_pod.get("runAsNonRoot")) is not True:
            yield "runAsNonRoot"
        if own.get("runAsUser", of_pod.get("runAsUser")) == 0:
            yield "runAsUser"
        profile = own.get("seccompProfile", of_pod.get("seccompProfile", {}))
        if profile.get("type") not in ("RuntimeDefault", "Localhost"):
            yield "seccompProfile"
        if any("hostPort" in port for port in container.get("ports", [])):
            yield "hostPort"


@each_launch
def test_pod_security_restricted_takes_them(launch):
    templates = [pod for manifest in manifests(*launch).values() for pod in pod_templates(manifest)]
    assert templates
    for pod in templates:
        assert not list(violations(pod))
        assert pod["spec"]["automountServiceAccountToken"] is False


def test_the_list_of_controls_finds_what_is_not_restricted():
    (pod,) = pod_templates(manifests("--run_as=0", "train.py")["Job"])
    assert list(violations(pod)) == ["runAsNonRoot", "runAsUser"]
    (pod,) = pod_templates(manifests("--run_as=image", "train.py")["Job"])
    assert not list(violations(pod)) and "runAsUser" not in pod["spec"]["securityContext"]
    del pod["spec"]["containers"][0]["securityContext"]
    assert list(violations(pod)) == ["allowPrivilegeEscalation", "capabilities.drop"]


def test_everything_that_was_asked_for_is_in_the_pods():
    found = manifests(*EVERYTHING, "--remove_after=3600", "train.py")
    job = found["Job"]
    assert job["metadata"]["labels"] == {
        "app.kubernetes.io/instance": "train", "app.kubernetes.io/managed-by": "fleetrun", "team": "ads",
        "kueue.x-k8s.io/queue-name": "team"}
    assert (job["spec"]["suspend"], job["spec"]["ttlSecondsAfterFinished"]) == (True, 3600)
    template = job["spec"]["template"]
    assert template["metadata"]["annotations"] == {
        "prometheus.io/scrape": "true", "prometheus.io/port": "9400", "prometheus.io/path": "/metrics",
        "example.com/note": "a b"}
    pod = template["spec"]
    assert pod["nodeSelector"] == {"example.com/pool": "train"}
    assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                                  {"key": "team", "operator": "Equal", "value": "ads"}]
    selector = {"matchLabels": {"app.kubernetes.io/instance": "train"}}
    assert pod["topologySpreadConstraints"] == [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
         "labelSelector": selector},
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
         "labelSelector": selector}]
    assert (pod["priorityClassName"], pod["schedulerName"], pod["serviceAccountName"],
            pod["imagePullSecrets"]) == ("high", "volcano", "trainer", [{"name": "registry"}])
    only = container(job["spec"])
    assert only["resources"] == {"requests": {"cpu": "8", "memory": "64Gi"},
                                 "limits": {"memory": "64Gi", "amd.com/gpu": "8", "rdma/ib": "1"}}
    assert "--nproc_per_node=8" in only["args"] and "--metrics=0.0.0.0:9400" in only["args"]
    values = {variable["name"]: variable.get("value") for variable in only["env"]}
    assert (values["NCCL_DEBUG"], values["EMPTY"]) == ("INFO", "")
    assert only["envFrom"] == [{"secretRef": {"name": "keys"}}, {"configMapRef": {"name": "settings"}}]
    assert only["ports"] == [{"name": "meeting", "containerPort": 6768},
                             {"name": "metrics", "containerPort": 9400}]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounted = {mount["mountPath"]: volumes[mount["name"]] for mount in only["volumeMounts"]}
    assert mounted["/data"]["persistentVolumeClaim"] == {"claimName": "data"}
    assert mounted["/tables"]["configMap"] == {"name": "tables"}
    assert mounted["/keys"]["secret"] == {"secretName": "keys"}
    assert mounted["/scratch"]["emptyDir"] == {"sizeLimit": "10Gi"}
    assert mounted["/dev/shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Gi"}
    assert found["PodDisruptionBudget"]["spec"] == {"minAvailable": 4, "selector": selector}


def test_variables_of_the_user_come_before_ours_and_hold_any_text():
    only = container(manifests("--env=HOME=/data", "--env=COST=$(id) $5", "train.py")["Job"]["spec"])
    values = {variable["name"]: variable.get("value") for variable in only["env"]}
    assert values == {"POD_IP": None, "LOGNAME": "fleetrun", "HOME": "/data", "COST": "$$(id) $$5"}


def test_logs_of_the_users_own_directory_need_no_volume():
    spec = manifests("--log-dir=/data/log", "train.py")["Job"]["spec"]
    assert [word for word in container(spec)["args"] if "log" in word] == ["--log-dir=/data/log"]
    assert {volume["name"] for volume in spec["template"]["spec"]["volumes"]} == {"secret", "shared-memory"}


def test_a_train_job_is_what_kubeflow_trainer_makes_pods_of():
    found = manifests("--kind=trainjob", "--name=train", "--nodes=3", "train.py")
    assert found["TrainJob"]["spec"] == {
        "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": "train"},
        "trainer": {"numNodes": 3}}
    (job,) = found["TrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"]
    assert job["name"] == container(job["template"]["spec"])["name"] == "node"
    assert job["template"]["metadata"]["labels"] == {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    assert "--master=train-node-0-0.train:6768" in container(job["template"]["spec"])["args"]


def test_a_base_for_kustomize_has_a_file_for_each_object(tmp_path):
    base = tmp_path / "base"
    done = run("--image=x", "--name=train", f"--output={base}", "--disruption_budget", "train.py")
    assert (done.returncode, done.stdout) == (0, f"# kubectl apply -k {base}\n")
    listed = yaml.safe_load((base / "kustomization.yaml").read_text())
    assert listed["kind"] == "Kustomization"
    kinds = {name: yaml.safe_load((base / name).read_text())["kind"] for name in listed["resources"]}
    assert kinds == {"secret.yaml": "Secret", "service.yaml": "Service", "job.yaml": "Job",
                     "disruption-budget.yaml": "PodDisruptionBudget"}
    assert {path.stat().st_mode & 0o777 for path in base.iterdir()} == {0o600}


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
        "--secret_file=/etc/fleetrun/secret", "--log_dir=/var/log/fleetrun/log", "--nproc_per_node=2",
        "train.py", "--epochs=3",
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


@pytest.mark.parametrize("volume", [[], ["--volume=pvc:scripts:/work"]])
def test_the_image_is_ours_by_default_which_has_no_script(volume):
    done = run(*volume, "train.py")
    assert done.returncode == 0, done.stderr
    *_, job = yaml.safe_load_all(done.stdout)
    assert container(job["spec"])["image"] == image_package.NAME
    warned = f"{image_package.NAME} has no train.py: --volume=pvc:CLAIM:/work brings it" in done.stderr
    assert warned is not bool(volume)


@pytest.mark.parametrize("arguments, said", [
    (["--image=", "train.py"], "--image= needs a value"),
    (["--image=x", "--name=Train", "train.py"], "--name is 'Train'"),
    (["--image=x", "--name=on\n", "train.py"], "--name is 'on"),
    (["--image=x", "--kind=pod", "train.py"], "--kind is 'pod': job, jobset or trainjob is needed"),
    (["--image=x", "--nodes=2", "--nnodes=3", "train.py"], "--nodes is 2, and --nnodes is 3"),
    (["--image=x", "--secret_file=s", "train.py"], "--secret_file is the manifest's to say"),
    (["--image=x", "--nnodes=2", "--rank=1", "train.py"], "--rank is the pod's to say"),
    (["--image=x", "--hosts=a,b", "train.py"], "the hosts of this job are Kubernetes's to give"),
    (["--image=x", "--kind=jobset", "--server_nodes=1", "train.py"], "the job is not a parameter-server job"),
    (["--image=x", "--env=A", "train.py"], "--env is 'A': NAME=VALUE is needed"),
    (["--image=x", "--volume=host:/a:/b", "train.py"], "--volume is 'host:/a:/b': pvc:CLAIM"),
    (["--image=x", "--volume=empty:/dev/shm", "train.py"], "--volume is '/dev/shm': something else"),
    (["--image=x", "--toleration=gpu:Never", "train.py"], "--toleration is 'gpu:Never'"),
    (["--image=x", "--run_as=root", "train.py"], "--run_as is 'root': UID, UID:GID or image is needed"),
    (["--image=x", "--queue=a", "--queue=b", "train.py"], "--queue is there twice"),
    (["--image=x", "--gpu_resource=amd.com/gpu", "train.py"], "--gpus_per_node is not"),
    (["--image=x", "--metrics_port=6768", "train.py"], "--metrics_port is '6768': pods meet there"),
    (["--image=x", "--metrics_port=9400", "--metrics=9400", "train.py"], "--metrics_port are both given"),
    (["--image=x", "--kind=trainjob", "--remove_after=9", "train.py"], "a TrainJob is kept"),
    (["--image=x", "train.py", b"\xff"], "is not UTF-8, and a manifest holds nothing else"),
])
def test_what_kubernetes_would_not_take_is_refused(arguments, said):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (125, "")
    assert said in done.stderr
