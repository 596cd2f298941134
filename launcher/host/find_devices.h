// Accelerators: which ones this host shows to a job, and which of them each trainer gets.
//
// A device is a token, kept as it was written: an index ("2"), a UUID or its beginning ("GPU-8a2f"), a MIG
// name ("MIG-…"). The visible list comes from the first of
//
//   NAME_VISIBLE_DEVICES (npu: also ASCEND_RT_VISIBLE_DEVICES)  custom, where PADDLE_XCCL_BACKEND is NAME
//   CUDA_VISIBLE_DEVICES  HIP_VISIBLE_DEVICES  ROCR_VISIBLE_DEVICES  GPU_DEVICE_ORDINAL     GPUs
//   XPU_VISIBLE_DEVICES  XPULINK_VISIBLE_DEVICES                                            Kunlun XPUs
//   SLURM_STEP_GPUS  SLURM_JOB_GPUS             the allocation, where Slurm left the choice to us
//   /dev/nvidia*                                every one that may be opened (a cgroup may forbid some)
//
// of which --gpus, --xpus and --npus leave their own kind, and a list is cut where CUDA would stop reading
// it: at "-1", at an empty entry, at what may not be opened.
//
// A trainer is told in two ways, and both mean the same device. FLAGS_selected_gpus (_xpus, _npus) holds
// indices into the list that the process sees, as Paddle's launcher counts them; and device LOCAL_RANK of
// that list is the trainer's, as torch's scripts take for granted. So where --devices names others than the
// first of the inherited list, in their order, the variable that shows the list is set anew, the same for all
// trainers of the host, and the indices count from 0 in it: what Paddle's launcher does where the user has
// set the variable to these devices. It is set anew, too, for names given with --devices, for Slurm's
// allocation, and for MIG: CUDA gives a process one MIG device at most, so every trainer has its own one
// there and index 0.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/model/devices.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// Looks below `root` ("" for the machine). Opens no device: that would wake it up.
std::vector<DeviceFile> read_device_files(const std::string& root);

/// `asked`: the kind that the user's flag names, "gpus", "xpus" or "npus"; empty: any. Pure.
DeviceList visible_devices(const Environ& environ, const std::vector<DeviceFile>& files,
                           std::string_view asked = {});

/// "2,0,-1,3" → {"2","0"}. Pure.
std::vector<std::string> parse_visible_devices(const std::string& text);

/// What a device is called among all jobs of this host: "gpu GPU-8a2f-44", "npu 3". Pure.
std::string device_key(const std::string& token, const DeviceList& list);

/// Pure. A trainer that is alone gets all devices. More trainers than devices run on the CPU,
/// unless devices were asked for. Devices that another job holds are passed over, unless they were asked for:
/// by --devices, or by a variable that shows as many as there are trainers.
/// Throws: Error(host) when devices were asked for that are not visible, or too few; when too few are free.
DevicePlan plan_devices(const DeviceSpec& spec, const DeviceList& list);

}  // namespace fleetrun::launcher
