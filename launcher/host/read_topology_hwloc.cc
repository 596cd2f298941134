// The one file that knows hwloc. Its library is loaded when a topology is asked for, not when fleetrun
// starts: loading it takes milliseconds (it brings libudev along),
// and jobs that bind nothing shall not need it.
#include <dlfcn.h>
#include <hwloc.h>

#include <memory>

#include "launcher/host/read_topology.h"
#include "launcher/model/topology.h"
#include "runtime/base/error.h"

namespace fleetrun::launcher {
namespace {

constexpr char kLibrary[] = "libhwloc.so.15";  // hwloc 2: what the headers above describe

class Library {
 public:
  Library() : handle_(::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_) return;
    const char* why = ::dlerror();
    throw Error(ErrorKind::host, std::string("cores cannot be bound: ") + (why ? why : kLibrary),
                "install libhwloc15, or leave --bind out");
  }
  ~Library() { ::dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// The library's own function of the name and type that the header declares.
  template <class Function>
  Function* find(const char* name) const {
    if (void* symbol = ::dlsym(handle_, name)) return reinterpret_cast<Function*>(symbol);
    throw Error(ErrorKind::host, std::string(kLibrary) + " has no " + name,
                "install libhwloc15 of this system");
  }

 private:
  void* handle_;
};

int checked(int result, const char* what) {
  return check_errno(result, what, "reading the machine's topology");
}

}  // namespace

Topology read_topology(const std::string& synthetic) {
  const Library library;
  const auto init = library.find<decltype(hwloc_topology_init)>("hwloc_topology_init");
  const auto destroy = library.find<decltype(hwloc_topology_destroy)>("hwloc_topology_destroy");
  const auto set_synthetic =
      library.find<decltype(hwloc_topology_set_synthetic)>("hwloc_topology_set_synthetic");
  const auto load = library.find<decltype(hwloc_topology_load)>("hwloc_topology_load");
  const auto depth_of = library.find<decltype(hwloc_get_type_depth)>("hwloc_get_type_depth");
  const auto count_at = library.find<decltype(hwloc_get_nbobjs_by_depth)>("hwloc_get_nbobjs_by_depth");
  const auto object_at = library.find<decltype(hwloc_get_obj_by_depth)>("hwloc_get_obj_by_depth");
  const auto next = library.find<decltype(hwloc_bitmap_next)>("hwloc_bitmap_next");

  hwloc_topology_t raw = nullptr;
  checked(init(&raw), "hwloc_topology_init");
  const std::unique_ptr<hwloc_topology, decltype(destroy)> owner(raw, destroy);
  if (!synthetic.empty()) checked(set_synthetic(raw, synthetic.c_str()), "hwloc_topology_set_synthetic");
  checked(load(raw), "hwloc_topology_load");

  int depth = depth_of(raw, HWLOC_OBJ_CORE);
  if (depth < 0) depth = depth_of(raw, HWLOC_OBJ_PU);  // some virtual machines have no cores
  Topology topology;
  const unsigned count = depth < 0 ? 0 : count_at(raw, depth);
  for (unsigned i = 0; i < count; ++i) {
    const hwloc_obj_t object = object_at(raw, depth, i);
    Core core;
    for (int cpu = next(object->cpuset, -1); cpu >= 0; cpu = next(object->cpuset, cpu))
      core.cpus.push_back(cpu);
    const int node = object->nodeset ? next(object->nodeset, -1) : 0;  // the first: others hold no CPUs (HBM)
    core.node = node < 0 ? 0 : node;
    topology.cores.push_back(std::move(core));
  }
  return topology;
}

}  // namespace fleetrun::launcher
