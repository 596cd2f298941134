// Accelerators: which ones this host shows to a job, and which of them each trainer gets.
//
// A device is a token, kept as it was written: an index ("2"), a UUID or its beginning ("GPU-8a2f"), a MIG
// name ("MIG-…"). The visible list comes from the first of
//
//   CUDA_VISIBLE_DEVICES  HIP_VISIBLE_DEVICES  ROCR_VISIBLE_DEVICES  GPU_DEVICE_ORDINAL     GPUs
//   XPU_VISIBLE_DEVICES  XPULINK_VISIBLE_DEVICES                                            Kunlun XPUs
//   SLURM_STEP_GPUS  SLURM_JOB_GPUS             the allocation, where Slurm left the choice to us
//   /dev/nvidia*                                every one that may be opened (a cgroup may forbid some)
//
// and a list is cut where CUDA would stop reading it: at "-1", at an empty entry, at what may not be opened.
//
// A trainer is told in Paddle's way: FLAGS_selected_gpus (FLAGS_selected_xpus) holds indices into the visible
// list, and the variable that shows the list is inherited. It is set anew, and the indices count from 0 in
// it, only where the inherited one would not show the devices that are meant: names given with --devices,
// Slurm's allocation, and MIG: CUDA gives a process one MIG device at most, so every trainer has its own one
// there and index 0. A script that takes LOCAL_RANK for its device (torch) wants a subset as
// CUDA_VISIBLE_DEVICES, not as --devices.
#pragma once

#include <string>
#include <vector>

#include "launcher/model/devices.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// Looks below `root` ("" for the machine). Opens no device: that would wake it up.
std::vector<DeviceFile> read_device_files(const std::string& root);

/// Pure.
DeviceList visible_devices(const Environ& environ, const std::vector<DeviceFile>& files);

/// "2,0,-1,3" → {"2","0"}. Pure.
std::vector<std::string> parse_visible_devices(const std::string& text);

/// Pure. A trainer that is alone gets all devices. More trainers than devices run on the CPU,
/// unless devices were asked for.
/// Throws: Error(host) when devices were asked for that are not visible, or too few.
DevicePlan plan_devices(const DeviceSpec& spec, const DeviceList& list);

}  // namespace fleetrun::launcher
