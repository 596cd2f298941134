#include "launcher/schedulers/pod_choices.h"

#include <doctest/doctest.h>

#include "runtime/base/error.h"

namespace fleetrun::launcher {

TEST_CASE("labels, annotations and variables are what Kubernetes takes") {
  CHECK(label_of("label", "example.com/team=ads") == NameValue("example.com/team", "ads"));
  CHECK(label_of("label", "team=") == NameValue("team", ""));
  for (const char* bad : {"team", "=ads", "-team=a", "Example.com/team=a", "a/b/c=d", "team=-a", "team=a b"})
    CHECK_THROWS_AS(label_of("label", bad), Error);
  CHECK(annotation_of("annotation", "a=b=c d").second == "b=c d");
  CHECK(environment_of("env", "NCCL_DEBUG=a=b") == NameValue("NCCL_DEBUG", "a=b"));
  for (const char* bad : {"NAME", "=a", "1A=b", "A B=c"}) CHECK_THROWS_AS(environment_of("env", bad), Error);
  CHECK(source_of("env_from", "configmap:mine.v1") == NameValue("configmap", "mine.v1"));
  for (const char* bad : {"mine", "pvc:mine", "secret:", "secret:A"})
    CHECK_THROWS_AS(source_of("env_from", bad), Error);
  CHECK_THROWS_WITH_AS(label_of("node_selector", "gpu"),
                       "--node_selector is 'gpu': KEY=VALUE is needed, of letters, digits, '-', '_' and '.'",
                       Error);
}

TEST_CASE("a resource has a domain and a count") {
  CHECK(resource_of("resource", "rdma/ib=2") == NameValue("rdma/ib", "2"));
  for (const char* bad : {"rdma/ib", "gpu=1", "rdma/ib=0", "rdma/ib=x", "/ib=1"})
    CHECK_THROWS_AS(resource_of("resource", bad), Error);
}

TEST_CASE("a volume is of a kind that restricted pods may have, at a path") {
  using Kind = VolumeChoice::Kind;
  CHECK(volume_of("volume", "pvc:data:/data:ro") == VolumeChoice{Kind::claim, "data", "/data", true});
  CHECK(volume_of("volume", "configmap:c:/c") == VolumeChoice{Kind::config_map, "c", "/c", false});
  CHECK(volume_of("volume", "secret:s:/s:rw") == VolumeChoice{Kind::secret, "s", "/s", false});
  CHECK(volume_of("volume", "empty:/x") == VolumeChoice{Kind::empty, "", "/x", false});
  CHECK(volume_of("volume", "empty:10Gi:/x") == VolumeChoice{Kind::empty, "10Gi", "/x", false});
  for (const char* bad : {"pvc:/data", "host:/a:/b", "nfs:server:/a", "pvc:data:data", "empty:much:/x",
                          "empty", "", "pvc:Data:/data", "pvc:a:/b:c"})
    CHECK_THROWS_AS(volume_of("volume", bad), Error);
  CHECK_THROWS_WITH_AS(check_volumes({{Kind::empty, "", "/x", false}, {Kind::empty, "", "/x", false}}),
                       "--volume is '/x': something else is mounted there", Error);
  CHECK_THROWS_AS(check_volumes({{Kind::empty, "", "/dev/shm", false}}), Error);
}

TEST_CASE("a toleration is a key, perhaps with a value and an effect") {
  CHECK(toleration_of("toleration", "gpu") == Toleration{"gpu", "", std::nullopt});
  CHECK(toleration_of("toleration", "nvidia.com/gpu:NoSchedule") ==
        Toleration{"nvidia.com/gpu", "NoSchedule", std::nullopt});
  CHECK(toleration_of("toleration", "team=ads:NoExecute") == Toleration{"team", "NoExecute", "ads"});
  for (const char* bad : {"", "gpu:Never", "a b", "gpu=a b"})
    CHECK_THROWS_AS(toleration_of("toleration", bad), Error);
}

TEST_CASE("pods are spread as far as it can be, or must be") {
  CHECK(spread_of("spread", "zone") == SpreadChoice{"zone", false});
  CHECK(spread_of("spread", "topology.kubernetes.io/zone:must") ==
        SpreadChoice{"topology.kubernetes.io/zone", true});
  CHECK_THROWS_AS(spread_of("spread", "zone:should"), Error);
}

TEST_CASE("a user has a group of the same number, unless another is given") {
  PodChoices pods;
  set_user("run_as", "2000", pods);
  CHECK((pods.user == 2000 && pods.group == 2000));
  set_user("run_as", "0:5", pods);
  CHECK((pods.user == 0 && pods.group == 5));
  set_user("run_as", "image", pods);
  CHECK((!pods.user && !pods.group));
  for (const char* bad : {"", "root", "-1", "1:", "1:x"})
    CHECK_THROWS_AS(set_user("run_as", bad, pods), Error);
}

}  // namespace fleetrun::launcher
