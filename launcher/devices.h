// Accelerators: which ones this host shows to a job, and which of them each trainer gets.
//
// A device is a token, kept as it was written: an index ("2"), a UUID or its beginning ("GPU-8a2f"), a MIG name
// ("MIG-…"). The visible list comes from the first of
//
//   CUDA_VISIBLE_DEVICES  HIP_VISIBLE_DEVICES  ROCR_VISIBLE_DEVICES  GPU_DEVICE_ORDINAL     GPUs
//   XPU_VISIBLE_DEVICES  XPULINK_VISIBLE_DEVICES                                            Kunlun XPUs
//   SLURM_STEP_GPUS  SLURM_JOB_GPUS             the allocation, where Slurm left the choice to us
//   /dev/nvidia*                                every one that may be opened (a cgroup may forbid some)
//
// and a list is cut where CUDA would stop reading it: at "-1", at an empty entry, at what may not be opened.
//
// A trainer is told in Paddle's way: FLAGS_selected_gpus (FLAGS_selected_xpus) holds indices into the visible list,
// and the variable that shows the list is inherited. It is set anew, and the indices count from 0 in it, only where
// the inherited one would not show the devices that are meant: names given with --devices, Slurm's allocation, and
// MIG: CUDA gives a process one MIG device at most, so every trainer has its own one there and index 0.
// A script that takes LOCAL_RANK for its device (torch) wants a subset as CUDA_VISIBLE_DEVICES, not as --devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/environ.h"

namespace fleetrun::launcher {

enum class DeviceKind { gpu, xpu };

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
  std::vector<std::string> tokens;  // in their order; a trainer is told indices into this list
  std::vector<DeviceFile> files;    // that may be opened, in the order in which CUDA numbers them
  std::string variable = "CUDA_VISIBLE_DEVICES";  // shows the list to a process
  bool inherited = true;                          // what a process inherits shows it this list already
  bool from_environment = false;                  // nothing beside the list can be asked for
  std::string source;                             // "CUDA_VISIBLE_DEVICES (=0,1)", "/dev/nvidia*"
  bool operator==(const DeviceList&) const = default;
};

/// Looks below `root` ("" for the machine). Opens no device: that would wake it up.
std::vector<DeviceFile> read_device_files(const std::string& root);

/// Pure.
DeviceList visible_devices(const Environ& environ, const std::vector<DeviceFile>& files);

/// "2,0,-1,3" → {"2","0"}. Pure.
std::vector<std::string> parse_visible_devices(const std::string& text);

/// What one trainer gets.
struct ProcessDevices {
  std::vector<std::string> indices;  // for FLAGS_selected_gpus
  std::string visible;               // value of the list's variable; empty: inherited
  std::vector<std::string> pci;      // of those whose place is known
  bool operator==(const ProcessDevices&) const = default;
};

struct DeviceWish {
  std::optional<std::vector<std::string>> devices;  // --devices
  std::optional<int> processes;                     // --nproc_per_node
};

/// How many trainers a collective job starts on this host, and what each gets; `processes` is empty on the CPU.
struct DevicePlan {
  int trainers = 1;
  std::vector<ProcessDevices> processes;
};

/// Pure. A trainer that is alone gets all devices. More trainers than devices run on the CPU, unless devices were
/// asked for.
/// Throws: Error(host) when devices were asked for that are not visible, or too few.
DevicePlan plan_devices(const DeviceWish& wish, const DeviceList& list);

}  // namespace fleetrun::launcher
