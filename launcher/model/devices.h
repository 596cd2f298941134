// Accelerators of a host, and which of them each process gets.
// launcher/host/find_devices says how they are found.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fleetrun::launcher {

enum class DeviceKind {
  gpu,
  xpu,
  custom
};  // custom: of a plug-in of Paddle's, which PADDLE_XCCL_BACKEND names

/// One /dev/nvidiaN, and what the driver says about it ("" where it says nothing).
struct DeviceFile {
  int number = 0;
  bool usable = true;  // may be opened
  std::string pci;     // "0000:65:00.0"
  std::string uuid;    // "GPU-…"
  bool operator==(const DeviceFile&) const = default;
};

struct DeviceList {
  DeviceKind kind = DeviceKind::gpu;
  std::string backend;              // of custom devices: "npu"
  std::vector<std::string> tokens;  // in their order; a trainer is told indices into this list
  std::vector<DeviceFile> files;    // that may be opened, in the order in which CUDA numbers them
  std::string variable = "CUDA_VISIBLE_DEVICES";  // shows the list to a process
  bool inherited = true;                          // what a process inherits shows it this list already
  bool from_environment = false;                  // nothing beside the list can be asked for
  bool unknown = false;                           // which devices there are; any number may be asked for
  std::string source;                             // "CUDA_VISIBLE_DEVICES (=0,1)", "/dev/nvidia*"
  std::map<std::string, std::string> held;        // device_key() → the pod of another job that has it
  bool operator==(const DeviceList&) const = default;
};

/// What one trainer gets.
struct ProcessDevices {
  std::vector<std::string> indices;  // into the list that the process sees: for FLAGS_selected_gpus
  std::string visible;               // value of the list's variable; empty: inherited
  std::vector<std::string> pci;      // of those whose place is known
  bool operator==(const ProcessDevices&) const = default;
};

struct DeviceSpec {
  std::optional<std::vector<std::string>> devices;  // --devices
  std::optional<int> processes;                     // --nproc_per_node
};

/// How many trainers a collective job starts on this host, and what each gets;
/// `processes` is empty on the CPU.
struct DevicePlan {
  int trainers = 1;
  std::vector<ProcessDevices> processes;
  std::vector<std::string> keys;   // device_key() of all of them
  std::vector<std::string> notes;  // what the user should know
};

}  // namespace fleetrun::launcher
