#include "launcher/schedulers/manifest.h"

#include <doctest/doctest.h>

#include "launcher/schedulers/yaml_text.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

ManifestSpec spec() {
  ManifestSpec spec;
  spec.name = "train";
  spec.image = "registry/train:1";
  spec.nodes = {4, 4, 1};
  spec.secret = std::string(32, 's');
  spec.program = {"train.py"};
  return spec;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string refusal(const ManifestSpec& spec) {
  try {
    (void)manifest(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("strings of YAML hold any text, and no line breaks") {
  CHECK(yaml_quoted("a b") == "\"a b\"");
  CHECK(yaml_quoted("\"\\\n\t") == R"("\"\\\x0a\x09")");
  CHECK(yaml_quoted("\xc3\xbc\xe2\x80\xa8\xf0\x9f\x98\x80") == R"("\U000000fc\U00002028\U0001f600")");
  CHECK_THROWS_WITH_AS(yaml_quoted("a\xff"), doctest::Contains("is not UTF-8"), Error);
}

TEST_CASE("names are those of DNS, with room for what Kubernetes adds") {
  for (const char* good : {"a", "a-b", "a1"}) CHECK(is_dns_label(good, 10));
  for (const char* bad : {"", "1a", "-a", "a-", "A", "a_b", "a.b", "aaaaaaaaaaa", "a\n"})
    CHECK_FALSE(is_dns_label(bad, 10));
  ManifestSpec named = spec();
  named.name = std::string(61, 'a');
  CHECK(refusal(named).empty());
  named.name += "a";
  CHECK(has(refusal(named), "1 to 61 of a-z, 0-9 and '-' are needed"));
  named.nodes = {11, 11, 1};
  named.name = std::string(61, 'a');
  CHECK(has(refusal(named), "1 to 60 of"));
}

TEST_CASE("what Kubernetes would not take is refused by its flag") {
  const auto with = [](auto change) {
    ManifestSpec changed = spec();
    change(changed);
    return refusal(changed);
  };
  CHECK(with([](auto& w) { w.image = "a b"; }).starts_with("--image is 'a b'"));
  CHECK(with([](auto& w) { w.cpu = "many"; }).starts_with("--cpu is 'many'"));
  CHECK(with([](auto& w) { w.memory = "64 GB"; }).starts_with("--memory is '64 GB'"));
  CHECK(with([](auto& w) { w.name_space = "A"; }).starts_with("--namespace is 'A'"));
  CHECK(with([](auto& w) { w.secret_name = "x/y"; }).starts_with("--secret_name is 'x/y'"));
  CHECK(with([](auto& w) { w.server_nodes = 1; }).starts_with("--server_nodes is '1'"));
  for (const char* good : {"8", "500m", "1.5", "64Gi", "1G"})
    CHECK(with([&](auto& w) { w.cpu = good; }).empty());
  for (const char* bad : {"", ".5", "1.", "1.2.3", "Gi", "1gi", "-1"})
    CHECK_FALSE(with([&](auto& w) { w.cpu = bad; }).empty());
}

TEST_CASE("words of the command are not expanded by Kubernetes, but for the pod's index") {
  ManifestSpec shell = spec();
  shell.program = {"train.py", "$(HOME)", "$$"};
  shell.made_by = "fleetrun k8s '\xe2\x80\xa8kind: Pod\n'";
  const std::string text = manifest(shell);
  CHECK(text.starts_with("# Made by: fleetrun k8s '???kind: Pod\\x0a'\n# Start"));
  CHECK(has(text, "- \"$$(HOME)\"\n"));
  CHECK(has(text, "- \"$$$$\"\n"));
  CHECK(has(text, "- \"--rank=$(JOB_COMPLETION_INDEX)\"\n"));
  CHECK(has(text, "- \"--master=train-0.train:6768\"\n"));
}

TEST_CASE("an elastic job gives each index tries of its own") {
  ManifestSpec elastic = spec();
  elastic.nodes = {2, 8, 2};
  const std::string text = manifest(elastic);
  CHECK(has(text, "backoffLimitPerIndex: 3\n"));
  CHECK(has(text, "maxFailedIndexes: 6\n"));
  CHECK(has(text, "- \"--nnodes=2:8:2\"\n"));
  CHECK_FALSE(has(manifest(spec()), "backoffLimitPerIndex"));
}

TEST_CASE("a secret that is there already is used, and none is printed") {
  ManifestSpec named = spec();
  named.secret_name = "mine";
  const std::string text = manifest(named);
  CHECK_FALSE(has(text, "kind: Secret"));
  CHECK(has(text, "secretName: \"mine\"\n"));
  CHECK(has(manifest(spec()), "secret: c3Nz"));
}

TEST_CASE("servers and trainers of a JobSet have pods of their own") {
  ManifestSpec set = spec();
  set.kind = ManifestKind::jobset;
  set.server_nodes = 2;
  const std::string text = manifest(set);
  CHECK(has(text, "- name: servers\n"));
  CHECK(has(text, "- name: trainers\n"));
  CHECK(has(text, "- \"--nnodes=6\"\n"));
  CHECK(has(text, "- \"--master=train-servers-0-0.train:6768\"\n"));
  CHECK(has(text, "- \"--trainer_num=0\"\n"));
}

TEST_CASE("a TrainJob's pods are what Kubeflow Trainer looks for") {
  ManifestSpec job = spec();
  job.kind = ManifestKind::trainjob;
  const auto parts = manifest_parts(job);
  REQUIRE(parts.size() == 3);
  CHECK(parts[1].name == "runtime");
  CHECK(has(parts[1].text, "trainer.kubeflow.org/trainjob-ancestor-step: trainer\n"));
  CHECK(has(parts[1].text, "- name: node\n"));
  CHECK(has(parts[1].text, "containerName: node\n"));
  CHECK(has(parts[1].text, "- \"--master=train-node-0-0.train:6768\"\n"));
  CHECK(has(parts[2].text, "kind: TrainJob\n"));
  job.server_nodes = 1;
  CHECK(has(refusal(job), "pods of a TrainJob are all alike"));
  job.server_nodes = 0;
  job.pods.seconds_after_finish = 60;
  CHECK(has(refusal(job), "a TrainJob is kept until it is deleted"));
}

TEST_CASE("a base for kustomize lists every object's file") {
  ManifestSpec job = spec();
  job.pods.disruption_budget = true;
  const auto files = kustomize_base(job);
  REQUIRE(files.size() == 5);
  CHECK(files.back().name == "kustomization.yaml");
  for (const char* name : {"secret.yaml", "service.yaml", "disruption-budget.yaml", "job.yaml"})
    CHECK(has(files.back().text, std::string("  - ") + name + "\n"));
}

}  // namespace fleetrun::launcher
