#include "launcher/host/find_devices.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "runtime/base/error.h"
#include "tests/support/temp_dir.h"

using namespace fleetrun;
using namespace fleetrun::launcher;

namespace {

using Texts = std::vector<std::string>;

DeviceList listed(Texts tokens) {
  DeviceList list;
  list.tokens = std::move(tokens);
  list.from_environment = true;
  list.source = "CUDA_VISIBLE_DEVICES";
  return list;
}

std::vector<DeviceFile> three_files() {
  return {{0, true, "0000:e1:00.0", "GPU-eee"},
          {1, true, "0000:21:00.0", "GPU-222"},
          {2, true, "0000:a1:00.0", "GPU-aaa"}};
}

std::vector<DeviceFile> with_one_forbidden() {
  std::vector<DeviceFile> files = three_files();
  files[1].usable = false;
  return files;
}

Texts visible(const Environ& environ, const std::vector<DeviceFile>& files) {
  return visible_devices(environ, files).tokens;
}

}  // namespace

TEST_CASE("visible devices end at the first one that is none, as CUDA reads the list") {
  CHECK(parse_visible_devices("").empty());
  CHECK(parse_visible_devices("-1").empty());
  CHECK(parse_visible_devices("NoDevFiles").empty());
  CHECK(parse_visible_devices("2,0,-1,3") == Texts{"2", "0"});
  CHECK(parse_visible_devices("GPU-8a,MIG-1") == Texts{"GPU-8a", "MIG-1"});
}

TEST_CASE("devices are read from /dev and the driver, below any root") {
  const tests::TempDir root;
  std::filesystem::create_directories(root.path() / "dev");
  std::filesystem::create_directories(root.path() / "proc/driver/nvidia/gpus/0000:65:00.0");
  for (const char* name : {"nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm", "null"})
    root.write(std::string("dev/") + name, "");
  root.write("proc/driver/nvidia/gpus/0000:65:00.0/information",
             "Model: \t\t NVIDIA H200\nIRQ:   \t\t 0\nGPU UUID: \t GPU-8a2f-44\nDevice Minor: \t 10\n");
  const auto files = read_device_files(root.path());
  REQUIRE(files.size() == 2);
  CHECK(files[0] == DeviceFile{2, true, "", ""});
  CHECK(files[1] == DeviceFile{10, true, "0000:65:00.0", "GPU-8a2f-44"});
  CHECK(read_device_files(root.file("nothing")).empty());
}

TEST_CASE("without a list every device that may be opened is visible") {
  CHECK(visible({}, three_files()) == Texts{"0", "1", "2"});
  CHECK(visible({}, {}).empty());
  CHECK(visible({{"CUDA_VISIBLE_DEVICES", "all"}}, three_files()) == Texts{"0", "1", "2"});
  const DeviceList list = visible_devices({}, with_one_forbidden());
  CHECK(list.tokens == Texts{"0", "1"});
  CHECK(list.source == "/dev/nvidia* (2 of 3 may be opened)");
}

TEST_CASE("a list is cut where CUDA would stop reading it") {
  CHECK(visible({{"CUDA_VISIBLE_DEVICES", "2,0,1"}}, three_files()) == Texts{"2", "0", "1"});
  const DeviceList list = visible_devices({{"CUDA_VISIBLE_DEVICES", "0,2,1"}}, with_one_forbidden());
  CHECK(list.tokens == Texts{"0"});
  CHECK(list.source == "CUDA_VISIBLE_DEVICES (=0,2,1), of which 1 may be used");
  CHECK(visible({{"CUDA_VISIBLE_DEVICES", "GPU-a,GPU-222,GPU-e"}}, with_one_forbidden()) == Texts{"GPU-a"});
  CHECK(visible({{"CUDA_VISIBLE_DEVICES", "MIG-7,MIG-8"}}, three_files()) == Texts{"MIG-7", "MIG-8"});
  CHECK(visible({{"CUDA_VISIBLE_DEVICES", "0,1"}}, {}) ==
        Texts{"0", "1"});  // nothing known: taken at its word
  CHECK(visible({{"CUDA_VISIBLE_DEVICES", ""}}, three_files()).empty());
}

TEST_CASE("the first variable that is set decides, CUDA's before all others") {
  CHECK(visible({{"CUDA_VISIBLE_DEVICES", "1"}, {"ROCR_VISIBLE_DEVICES", "4,5"}}, {}) == Texts{"1"});
  CHECK(visible({{"HIP_VISIBLE_DEVICES", "1"}, {"ROCR_VISIBLE_DEVICES", "4,5"}}, {}) == Texts{"1"});
  CHECK(visible_devices({{"ROCR_VISIBLE_DEVICES", "4,5"}}, {}).variable == "ROCR_VISIBLE_DEVICES");
  CHECK(visible({{"GPU_DEVICE_ORDINAL", "3"}, {"SLURM_JOB_GPUS", "6"}}, {}) == Texts{"3"});
  const DeviceList xpus = visible_devices({{"XPU_VISIBLE_DEVICES", "2"}}, {});
  CHECK(xpus.kind == DeviceKind::xpu);
  CHECK(xpus.source == "XPU_VISIBLE_DEVICES (=2)");
}

TEST_CASE("Slurm's allocation is told to the trainers, unless its cgroup shows nothing else") {
  const Environ slurm = {{"SLURM_JOB_GPUS", "0,1,2"}, {"SLURM_STEP_GPUS", "0,2"}};
  const DeviceList told = visible_devices(slurm, three_files());
  CHECK(told.tokens == Texts{"0", "2"});
  const DevicePlan plan = plan_devices({}, told);
  REQUIRE(plan.trainers == 2);
  CHECK(plan.processes[1].indices == Texts{"1"});
  CHECK(plan.processes[1].visible == "0,2");

  const DeviceList confined = visible_devices(slurm, with_one_forbidden());
  CHECK(confined.tokens == Texts{"0", "1"});
  CHECK(plan_devices({}, confined).processes[1].visible == "");
  CHECK(visible({{"SLURM_JOB_GPUS", "1,4-6"}}, {}) == Texts{"1", "4", "5", "6"});
}

TEST_CASE("a trainer per device, and one on the CPU where there is none") {
  CHECK(plan_devices({}, {}).trainers == 1);
  CHECK(plan_devices({}, {}).processes.empty());
  CHECK(plan_devices({}, listed({"0", "1", "2"})).trainers == 3);
  CHECK(plan_devices({.devices = {}, .processes = 2}, listed({"0", "1", "2"})).processes.size() == 2);
  const DevicePlan alone = plan_devices({.devices = {}, .processes = 1}, listed({"4", "5"}));
  CHECK(alone.processes[0].indices == Texts{"0", "1"});
}

TEST_CASE("every trainer sees the devices that were named, and its own at the place of its local rank") {
  const DeviceList list = listed({"5", "6", "7"});
  const DevicePlan plan = plan_devices({.devices = Texts{"7", "5"}, .processes = {}}, list);
  REQUIRE(plan.trainers == 2);
  CHECK(plan.processes[0] == ProcessDevices{{"0"}, "7,5", {}});
  CHECK(plan.processes[1] == ProcessDevices{{"1"}, "7,5", {}});
  const DevicePlan last = plan_devices({.devices = Texts{"6", "7"}, .processes = {}}, list);
  CHECK(last.processes[1] == ProcessDevices{{"1"}, "6,7", {}});
  const DevicePlan alone = plan_devices({.devices = Texts{"6", "7"}, .processes = 1}, list);
  CHECK(alone.processes[0] == ProcessDevices{{"0", "1"}, "6,7", {}});
  const DevicePlan machine =
      plan_devices({.devices = Texts{"1", "2"}, .processes = {}}, visible_devices({}, three_files()));
  CHECK(machine.processes[0] == ProcessDevices{{"0"}, "1,2", {"0000:a1:00.0"}});
}

TEST_CASE("the first devices in their order are where local ranks look for them, so the list is inherited") {
  const DevicePlan plan =
      plan_devices({.devices = Texts{"5", "6"}, .processes = {}}, listed({"5", "6", "7"}));
  REQUIRE(plan.trainers == 2);
  CHECK(plan.processes[0] == ProcessDevices{{"0"}, "", {}});
  CHECK(plan.processes[1] == ProcessDevices{{"1"}, "", {}});
}

TEST_CASE("--xpus and --npus look at their own variables, and take numbers where nobody shows a list") {
  const Environ both = {{"CUDA_VISIBLE_DEVICES", "0,1"}, {"XPU_VISIBLE_DEVICES", "4,5,6"}};
  CHECK(visible_devices(both, {}, "xpus").tokens == Texts{"4", "5", "6"});
  CHECK(visible_devices({{"XPU_VISIBLE_DEVICES", "4"}}, three_files(), "gpus").tokens ==
        Texts{"0", "1", "2"});
  const DeviceList xpus = visible_devices({}, three_files(), "xpus");
  CHECK(xpus.kind == DeviceKind::xpu);
  const DevicePlan plan = plan_devices({.devices = Texts{"2", "3"}, .processes = {}}, xpus);
  CHECK(plan.processes[1] == ProcessDevices{{"1"}, "2,3", {}});
  CHECK(xpus.variable == "XPU_VISIBLE_DEVICES");

  const DeviceList npus = visible_devices(both, three_files(), "npus");
  CHECK(npus.kind == DeviceKind::custom);
  CHECK(npus.backend == "npu");
  CHECK(npus.variable == "ASCEND_RT_VISIBLE_DEVICES");
  CHECK(plan_devices({.devices = Texts{"1"}, .processes = {}}, npus).processes[0].visible == "1");
  CHECK_THROWS_WITH_AS(plan_devices({.devices = Texts{"x"}, .processes = {}}, npus),
                       "device x of --devices is no number, and ASCEND_RT_VISIBLE_DEVICES does not show the "
                       "devices",
                       Error);
  CHECK(visible_devices({{"NPU_VISIBLE_DEVICES", "6,7"}}, {}, "npus").tokens == Texts{"6", "7"});
}

TEST_CASE("PADDLE_XCCL_BACKEND names the kind of the devices, whichever flag names their numbers") {
  const Environ environ = {{"PADDLE_XCCL_BACKEND", "custom_cpu"}, {"CUSTOM_CPU_VISIBLE_DEVICES", "0,1"}};
  for (const char* asked : {"", "gpus", "npus"}) {
    const DeviceList list = visible_devices(environ, three_files(), asked);
    CHECK(list.backend == "custom_cpu");
    CHECK(list.tokens == Texts{"0", "1"});
  }
  const DeviceList unknown = visible_devices({{"PADDLE_XCCL_BACKEND", "custom_cpu"}}, {});
  CHECK(plan_devices({.devices = {}, .processes = 2}, unknown).processes[1] == ProcessDevices{{"1"}, "", {}});
}

TEST_CASE("a name may be cut short, as CUDA allows, but not to where it means two") {
  const DeviceList list = listed({"GPU-8a2f", "GPU-8b11"});
  CHECK(plan_devices({.devices = Texts{"GPU-8b"}, .processes = {}}, list).processes[0].visible == "GPU-8b11");
  CHECK_THROWS_WITH_AS(plan_devices({.devices = Texts{"GPU-8"}, .processes = {}}, list),
                       "device GPU-8 of --devices is GPU-8a2f or GPU-8b11", Error);
}

TEST_CASE("names are told to the trainers where no list shows them") {
  const DeviceList list = visible_devices({}, three_files());
  const DevicePlan plan = plan_devices({.devices = Texts{"GPU-aaa", "GPU-222"}, .processes = {}}, list);
  REQUIRE(plan.trainers == 2);
  CHECK(plan.processes[0] == ProcessDevices{{"0"}, "GPU-aaa,GPU-222", {"0000:a1:00.0"}});
  CHECK(plan.processes[1] == ProcessDevices{{"1"}, "GPU-aaa,GPU-222", {"0000:21:00.0"}});
  CHECK_THROWS_WITH_AS(
      plan_devices({.devices = Texts{"GPU-f"}, .processes = {}}, list),
      "device GPU-f of --devices is not there: the visible devices are 0,1,2, says /dev/nvidia*", Error);
  CHECK_THROWS_WITH_AS(plan_devices({.devices = Texts{"0", "GPU-aaa"}, .processes = {}}, list),
                       "--devices has numbers and names in one list: 0,GPU-aaa", Error);
}

TEST_CASE("a MIG device is shown to its trainer alone") {
  const DevicePlan plan = plan_devices({}, listed({"MIG-a", "MIG-b"}));
  REQUIRE(plan.trainers == 2);
  CHECK(plan.processes[0] == ProcessDevices{{"0"}, "MIG-a", {}});
  CHECK(plan.processes[1] == ProcessDevices{{"0"}, "MIG-b", {}});
}

TEST_CASE("the place of a device is known by number in PCI order, and by the GPU in a name") {
  const DeviceList list =
      visible_devices({{"CUDA_VISIBLE_DEVICES", "1,MIG-GPU-222/1/0,MIG-7"}}, three_files());
  const DevicePlan plan = plan_devices({}, list);
  REQUIRE(plan.trainers == 3);
  CHECK(plan.processes[0].pci == Texts{"0000:a1:00.0"});
  CHECK(plan.processes[1].pci == Texts{"0000:21:00.0"});
  CHECK(plan.processes[2].pci.empty());
}

TEST_CASE("more trainers than devices run on the CPU, unless devices were asked for") {
  const DevicePlan plan = plan_devices({.devices = {}, .processes = 3}, listed({"0"}));
  CHECK(plan.trainers == 3);
  CHECK(plan.processes.empty());
  try {
    plan_devices({.devices = Texts{"0"}, .processes = 3}, listed({"0"}));
    FAIL("3 trainers on 1 device");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "3 trainers asked for, 1 devices given");
    CHECK(error.hint() == "leave --nproc_per_node out, or name more --devices");
  }
}

TEST_CASE("a device that is not there is named, with what is") {
  try {
    plan_devices({.devices = Texts{"0", "1"}, .processes = {}}, visible_devices({}, {}));
    FAIL("a device that is not there");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) ==
          "device 0 of --devices is not there: this host has no devices, says /dev/nvidia*");
    CHECK(error.hint() == "leave --devices out to run on the CPU");
  }
  CHECK_THROWS_WITH_AS(
      plan_devices({.devices = Texts{"0", "1"}, .processes = {}}, listed({"0", "3"})),
      "device 1 of --devices is not there: the visible devices are 0,3, says CUDA_VISIBLE_DEVICES", Error);
  CHECK_THROWS_AS(plan_devices({.devices = Texts{"GPU-1"}, .processes = {}}, visible_devices({}, {})), Error);
}

TEST_CASE("devices that another job holds are passed over where nobody asked for them") {
  DeviceList list = visible_devices({}, three_files());
  list.held = {{device_key("0", list), "abcdef"}};
  const DevicePlan two = plan_devices({.devices = {}, .processes = 2}, list);
  CHECK(two.processes[0] == ProcessDevices{{"0"}, "1,2", {"0000:a1:00.0"}});
  CHECK(two.keys == Texts{device_key("1", list), device_key("2", list)});
  CHECK(two.notes.empty());
  const DevicePlan alone = plan_devices({.devices = {}, .processes = 1}, list);
  CHECK(alone.processes[0].visible == "1,2");
  CHECK(alone.keys.size() == 2);
  CHECK_THROWS_WITH_AS(
      plan_devices({}, list),
      "3 trainers need devices, and 2 of 3 are free; other jobs of yours hold 0 (pod abcdef)", Error);
  CHECK(plan_devices({.devices = {}, .processes = 4}, list).processes.empty());  // on the CPU: none taken
}

TEST_CASE("devices that the user names are shared, and that is said") {
  DeviceList list = visible_devices({}, three_files());
  list.held = {{device_key("1", list), "abcdef"}};
  const DevicePlan named = plan_devices({.devices = Texts{"1"}, .processes = {}}, list);
  CHECK(named.processes[0].visible == "1");
  CHECK(named.notes == Texts{"device 1 is used by pod abcdef, too"});
  DeviceList shown = visible_devices({{"CUDA_VISIBLE_DEVICES", "0,1"}}, three_files());
  shown.held = list.held;
  CHECK(plan_devices({}, shown).notes.size() == 1);
  CHECK_THROWS_AS(plan_devices({.devices = {}, .processes = 2},
                               [&] {
                                 DeviceList wider = visible_devices({}, three_files());
                                 wider.held = {{device_key("0", wider), "a"}, {device_key("2", wider), "b"}};
                                 return wider;
                               }()),
                  Error);
}

TEST_CASE("a device has one key, whatever it is called") {
  const DeviceList list = visible_devices({}, three_files());
  CHECK(device_key("0", list) == "gpu GPU-222");
  CHECK(device_key("GPU-22", list) == "gpu GPU-222");
  CHECK(device_key("MIG-7", list) == "gpu MIG-7");
  CHECK(device_key("9", list) == "gpu 9");
  CHECK(device_key("3", visible_devices({{"PADDLE_XCCL_BACKEND", "npu"}}, {})) == "npu 3");
}
