#include "launcher/host/find_devices.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

struct Variable {
  const char* name;
  DeviceKind kind;
};
// Paddle looks at CUDA's, then at the XPUs'; the others are what ROCm reads.
constexpr Variable kVariables[] = {
    {"CUDA_VISIBLE_DEVICES", DeviceKind::gpu}, {"HIP_VISIBLE_DEVICES", DeviceKind::gpu},
    {"ROCR_VISIBLE_DEVICES", DeviceKind::gpu}, {"GPU_DEVICE_ORDINAL", DeviceKind::gpu},
    {"XPU_VISIBLE_DEVICES", DeviceKind::xpu},  {"XPULINK_VISIBLE_DEVICES", DeviceKind::xpu},
};

bool is_mig(const std::string& token) {
  return token.starts_with("MIG-");
}
bool is_name(const std::string& token) {
  return token.starts_with("GPU-") || is_mig(token);
}

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  while (const dirent* entry = directory ? ::readdir(directory.get()) : nullptr)
    names.emplace_back(entry->d_name);
  return names;
}

/// The file's text up to 4 KiB; "" when it cannot be read.
std::string text_of(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char bytes[4096];
  const ssize_t count = fd ? ::read(fd.value(), bytes, sizeof bytes) : 0;
  return std::string(bytes, count > 0 ? static_cast<std::size_t>(count) : 0);
}

/// The value of "NAME: \t value" in the driver's information.
std::string field(const std::string& text, const std::string& name) {
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(name + ":")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", name.size() + 1);
    return begin == std::string::npos ? "" : line.substr(begin, line.find_last_not_of(" \t") + 1 - begin);
  }
  return "";
}

/// CUDA numbers equal GPUs by their PCI address; without addresses the files' own order is the best guess.
std::vector<DeviceFile> usable_in_order(std::vector<DeviceFile> files) {
  std::erase_if(files, [](const DeviceFile& file) { return !file.usable; });
  std::stable_sort(files.begin(), files.end(),
                   [](const DeviceFile& a, const DeviceFile& b) { return a.pci < b.pci; });
  return files;
}

/// The file that `token` means; nullptr when it is not known.
const DeviceFile* file_of(const std::string& token, const std::vector<DeviceFile>& usable) {
  if (const auto index = parse_integer(token))
    return *index >= 0 && *index < std::ssize(usable) ? &usable[static_cast<std::size_t>(*index)] : nullptr;
  // "MIG-GPU-<uuid>/1/0" is the older way to name a MIG device; the newer one does not tell the GPU.
  const std::string name = token.starts_with("MIG-GPU-") ? token.substr(4, token.find('/') - 4) : token;
  const auto found = std::find_if(usable.begin(), usable.end(), [&](const DeviceFile& file) {
    return !file.uuid.empty() && file.uuid.starts_with(name);
  });
  return found == usable.end() ? nullptr : &*found;
}

/// Whether CUDA would find `token`; true where it cannot be told.
bool may_exist(const std::string& token, const std::vector<DeviceFile>& usable) {
  if (parse_integer(token)) return file_of(token, usable) != nullptr;
  const bool told = std::all_of(usable.begin(), usable.end(), [](const auto& f) { return !f.uuid.empty(); });
  return !usable.empty() && (is_mig(token) || !told || file_of(token, usable) != nullptr);
}

/// Whether `variable` shows a list; it is then `list`'s.
bool take_list(const Environ& environ, const Variable& variable, DeviceList& list) {
  const std::string* value = environ.find(variable.name);
  if (!value || *value == "all") return false;
  list.kind = variable.kind;
  list.variable = variable.name;
  list.from_environment = true;
  list.tokens = parse_visible_devices(*value);
  list.source = list.variable + " (=" + *value + ")";
  return true;
}

/// Only the plug-in knows how many there are, so numbers that no variable shows are taken at their word.
DeviceList custom_devices(const Environ& environ, const std::string& backend) {
  std::string variable = backend + "_VISIBLE_DEVICES";
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::vector<std::string> variables = {variable};
  if (backend == "npu") variables.insert(variables.begin(), "ASCEND_RT_VISIBLE_DEVICES");  // CANN reads it
  DeviceList list;
  list.backend = backend;
  for (const std::string& name : variables) {
    if (take_list(environ, {name.c_str(), DeviceKind::custom}, list)) return list;
  }
  list.kind = DeviceKind::custom;
  list.variable = variables.front();
  list.unknown = true;
  return list;
}

/// "0,2-3" → {"0","2","3"}
std::vector<std::string> expand_ranges(const std::string& text) {
  std::vector<std::string> tokens;
  for (const std::string& part : parse_visible_devices(text)) {
    const std::size_t dash = part.find('-');
    const auto low = parse_integer(part.substr(0, dash));
    const auto high = dash == std::string::npos ? low : parse_integer(part.substr(dash + 1));
    if (!low || !high || *low < 0 || *high - *low > 1023) {
      tokens.push_back(part);
      continue;
    }
    for (auto number = *low; number <= *high; ++number) tokens.push_back(std::to_string(number));
  }
  return tokens;
}

std::vector<std::string> numbers_below(std::size_t count) {
  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

void cut(DeviceList& list) {
  const auto end = std::find_if(list.tokens.begin(), list.tokens.end(),
                                [&](const std::string& token) { return !may_exist(token, list.files); });
  if (end == list.tokens.end()) return;
  list.source += ", of which " + std::to_string(end - list.tokens.begin()) + " may be used";
  list.tokens.erase(end, list.tokens.end());
}

[[noreturn]] void refuse(const std::string& device, const DeviceList& list) {
  if (list.unknown)
    throw Error(ErrorKind::host,
                "device " + printable(device) + " of --devices is no number, and " + list.variable +
                    " does not show the devices",
                "name them by their numbers, or set " + list.variable);
  const bool none = list.tokens.empty();
  throw Error(ErrorKind::host,
              "device " + printable(device) + " of --devices is not there: " +
                  (none ? "this host has no devices" : "the visible devices are " + join(list.tokens, ",")) +
                  ", says " + list.source,
              none ? "leave --devices out to run on the CPU" : "name visible devices only");
}

/// The place of `token` in the list: itself, or the one name that begins with it.
std::optional<std::size_t> place_of(const std::string& token, const DeviceList& list) {
  const auto& tokens = list.tokens;
  const auto exact = std::find(tokens.begin(), tokens.end(), token);
  if (exact != tokens.end()) return static_cast<std::size_t>(exact - tokens.begin());
  std::optional<std::size_t> place;
  for (std::size_t i = 0; is_name(token) && i < tokens.size(); ++i) {
    if (!tokens[i].starts_with(token)) continue;
    if (place)
      throw Error(ErrorKind::host,
                  "device " + printable(token) + " of --devices is " + tokens[*place] + " or " + tokens[i],
                  "write more of its name");
    place = i;
  }
  return place;
}

struct Choice {
  std::vector<std::string> tokens, indices;
  bool inherited = true;
};

/// The trainer of rank 0 takes the first device that it sees, whichever way its script finds it.
Choice counted_from_zero(Choice choice) {
  if (choice.indices != numbers_below(choice.tokens.size())) choice.inherited = false;
  if (!choice.inherited) choice.indices = numbers_below(choice.tokens.size());
  return choice;
}

[[noreturn]] void refuse_held(std::size_t wanted, std::size_t free, const Choice& all,
                              const DeviceList& list) {
  std::vector<std::string> held, shared(all.tokens.begin(), all.tokens.begin() + std::ptrdiff_t(wanted));
  for (const std::string& token : all.tokens) {
    const auto found = list.held.find(device_key(token, list));
    if (found != list.held.end()) held.push_back(token + " (pod " + printable(found->second) + ")");
  }
  throw Error(ErrorKind::host,
              std::to_string(wanted) + (wanted == 1 ? " trainer needs" : " trainers need") +
                  " devices, and " + std::to_string(free) + " of " + std::to_string(all.tokens.size()) +
                  " are free; other jobs of yours hold " + join(held, ", "),
              "wait for them (fleetrun list), share devices with --devices=" + join(shared, ",") +
                  ", or train on the CPU with an empty " + list.variable);
}

/// The visible devices that no other job holds, where the user has not said which.
Choice choose_free(const DeviceSpec& spec, const DeviceList& list) {
  const auto count = static_cast<std::size_t>(spec.processes.value_or(0));
  const Choice all = list.unknown ? Choice{numbers_below(count), numbers_below(count), true}
                                  : Choice{list.tokens, numbers_below(list.tokens.size()), list.inherited};
  const std::size_t wanted = spec.processes ? count : all.tokens.size();
  Choice free = {{}, {}, all.inherited};
  for (std::size_t i = 0; i < all.tokens.size(); ++i) {
    if (list.held.contains(device_key(all.tokens[i], list))) continue;
    free.tokens.push_back(all.tokens[i]);
    free.indices.push_back(all.indices[i]);
  }
  const bool asked_for = list.from_environment && wanted == all.tokens.size();
  if (free.tokens.size() == all.tokens.size() || wanted > all.tokens.size() || asked_for) return all;
  if (free.tokens.empty() || free.tokens.size() < wanted) refuse_held(wanted, free.tokens.size(), all, list);
  if (wanted > 1) {
    free.tokens.resize(wanted);
    free.indices.resize(wanted);
  }
  return counted_from_zero(std::move(free));
}

Choice choose(const DeviceSpec& spec, const DeviceList& list) {
  if (!spec.devices) return choose_free(spec, list);
  Choice choice = {{}, {}, list.inherited};
  for (const std::string& device : *spec.devices) {
    if (const auto place = place_of(device, list)) {
      choice.tokens.push_back(list.tokens[*place]);
      choice.indices.push_back(std::to_string(*place));
    } else if (list.unknown ? parse_integer(device).value_or(-1) >= 0
                            : !list.from_environment && is_name(device) && may_exist(device, list.files)) {
      choice.tokens.push_back(device);
      choice.inherited = false;
    } else {
      refuse(device, list);
    }
  }
  const auto names = std::count_if(choice.tokens.begin(), choice.tokens.end(), is_name);
  if (!choice.inherited && names != 0 && names != std::ssize(choice.tokens))
    throw Error(ErrorKind::host, "--devices has numbers and names in one list: " + join(*spec.devices, ","),
                "write all of them as names");
  return counted_from_zero(std::move(choice));
}

/// One trainer's part of the choice: `count` devices from `first` on.
ProcessDevices part_of(const Choice& choice, std::size_t first, std::size_t count, const DeviceList& list) {
  ProcessDevices part;
  const auto slice = [&](const std::vector<std::string>& all) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    return std::vector<std::string>(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  const std::vector<std::string> tokens = slice(choice.tokens);
  for (const std::string& token : tokens) {
    if (const DeviceFile* file = file_of(token, list.files); file && !file->pci.empty())
      part.pci.push_back(file->pci);
  }
  if (std::any_of(tokens.begin(), tokens.end(), is_mig)) {
    part.visible = join(tokens, ",");
    part.indices = numbers_below(count);
  } else {
    if (!choice.inherited) part.visible = join(choice.tokens, ",");
    part.indices = slice(choice.indices);
  }
  return part;
}

}  // namespace

std::vector<std::string> parse_visible_devices(const std::string& text) {
  std::vector<std::string> devices = split(text, ',');
  const auto end = std::find_if(devices.begin(), devices.end(), [](const std::string& d) {
    return d.empty() || d == "-1" || d == "none" || d == "void" || d == "NoDevFiles";  // the last is Slurm's
  });
  devices.erase(end, devices.end());
  return devices;
}

std::string device_key(const std::string& token, const DeviceList& list) {
  if (list.kind == DeviceKind::custom) return list.backend + " " + token;
  if (list.kind == DeviceKind::xpu) return "xpu " + token;
  const DeviceFile* file = is_mig(token) ? nullptr : file_of(token, list.files);
  if (!file) return "gpu " + token;
  if (!file->uuid.empty()) return "gpu " + file->uuid;
  return "gpu " + (file->pci.empty() ? "/dev/nvidia" + std::to_string(file->number) : file->pci);
}

std::vector<DeviceFile> read_device_files(const std::string& root) {
  std::vector<DeviceFile> files;
  for (const std::string& name : names_in(root + "/dev")) {
    if (!name.starts_with("nvidia")) continue;
    const auto number = parse_integer(std::string_view(name).substr(6));
    if (!number || *number < 0) continue;
    // The kernel asks the device cgroup here too, so EPERM is found without opening anything:
    // tests/integration/launcher/host/find_devices_test.cc.
    const bool usable = ::access((root + "/dev/" + name).c_str(), R_OK | W_OK) == 0;
    files.push_back({static_cast<int>(*number), usable, "", ""});
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  if (files.empty()) return files;
  const std::string directory = root + "/proc/driver/nvidia/gpus";
  for (const std::string& pci : names_in(directory)) {
    const std::string text = text_of(directory + "/" + pci + "/information");
    const auto number = parse_integer(field(text, "Device Minor"));
    for (DeviceFile& file : files) {
      if (!number || file.number != *number) continue;
      file.pci = pci;
      file.uuid = field(text, "GPU UUID");
    }
  }
  return files;
}

DeviceList visible_devices(const Environ& environ, const std::vector<DeviceFile>& files,
                           std::string_view asked) {
  const std::string backend = environ.value_or("PADDLE_XCCL_BACKEND", asked == "npus" ? "npu" : "");
  if (!backend.empty()) return custom_devices(environ, backend);
  DeviceList list;
  if (asked != "xpus") list.files = usable_in_order(files);
  for (const Variable& variable : kVariables) {
    const bool wanted = asked.empty() || (asked == "xpus") == (variable.kind == DeviceKind::xpu);
    if (!wanted || !take_list(environ, variable, list)) continue;
    if (list.variable == "CUDA_VISIBLE_DEVICES" && !files.empty()) cut(list);
    return list;
  }
  if (asked == "xpus") {
    list.kind = DeviceKind::xpu;
    list.variable = "XPU_VISIBLE_DEVICES";
    list.unknown = true;
    return list;
  }
  for (const char* name : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"}) {
    const std::string* value = environ.find(name);
    if (!value || value->empty()) continue;
    list.tokens = expand_ranges(*value);
    list.source = std::string(name) + " (=" + *value + ")";
    list.from_environment = true;
    // Where Slurm's cgroup shows only the allocated ones, CUDA numbers those anew.
    list.inherited = !files.empty() && list.files.size() <= list.tokens.size();
    if (list.inherited) list.tokens = numbers_below(list.files.size());
    return list;
  }
  list.tokens = numbers_below(list.files.size());
  list.source = "/dev/nvidia*";
  if (list.files.size() < files.size())
    list.source +=
        " (" + std::to_string(list.files.size()) + " of " + std::to_string(files.size()) + " may be opened)";
  return list;
}

DevicePlan plan_devices(const DeviceSpec& spec, const DeviceList& list) {
  const Choice choice = choose(spec, list);
  const std::size_t devices = choice.tokens.size();
  DevicePlan plan;
  plan.trainers = spec.processes.value_or(std::max(static_cast<int>(devices), 1));
  const auto trainers = static_cast<std::size_t>(plan.trainers);
  if (devices == 0) return plan;
  if (trainers > devices && spec.devices)
    throw Error(
        ErrorKind::host,
        std::to_string(plan.trainers) + " trainers asked for, " + std::to_string(devices) + " devices given",
        "leave --nproc_per_node out, or name more --devices");
  if (trainers > devices) return plan;
  for (std::size_t i = 0; i < trainers; ++i)
    plan.processes.push_back(part_of(choice, i, trainers == 1 ? devices : 1, list));
  for (std::size_t i = 0; i < (trainers == 1 ? devices : trainers); ++i) {
    plan.keys.push_back(device_key(choice.tokens[i], list));
    if (const auto held = list.held.find(plan.keys.back()); held != list.held.end())
      plan.notes.push_back("device " + printable(choice.tokens[i]) + " is used by pod " +
                           printable(held->second) + ", too");
  }
  return plan;
}

}  // namespace fleetrun::launcher
