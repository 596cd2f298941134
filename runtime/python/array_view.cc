// DLPack's own structures are written down here as its specification lays them out (version 0, which every
// library gives when it is not asked for more): https://dmlc.github.io/dlpack/latest/c_api.html
#include "runtime/python/array_view.h"

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/error.h"

namespace fleetrun::python {

namespace {

namespace py = pybind11;
using collective::DataType;

struct DlDevice {
  std::int32_t type = 0;
  std::int32_t number = 0;
};
struct DlType {
  std::uint8_t code = 0;
  std::uint8_t bits = 0;
  std::uint16_t lanes = 1;
};
struct DlTensor {
  void* data;
  DlDevice device;
  std::int32_t axes;
  DlType type;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: contiguous
  std::uint64_t offset;   // bytes
};
struct DlManagedTensor {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManagedTensor*);
};

constexpr std::int32_t kCpu = 1, kCuda = 2, kPinned = 3, kCudaManaged = 13;
constexpr std::uint8_t kInt = 0, kUnsigned = 1, kFloat = 2, kBrainFloat = 4, kBool = 6;

std::optional<DataType> type_of(const DlType& type) {
  if (type.lanes != 1) return {};
  switch (type.code * 256 + type.bits) {
    case kFloat * 256 + 32:
      return DataType::float32;
    case kFloat * 256 + 64:
      return DataType::float64;
    case kFloat * 256 + 16:
      return DataType::float16;
    case kBrainFloat * 256 + 16:
      return DataType::bfloat16;
    case kInt * 256 + 8:
      return DataType::int8;
    case kInt * 256 + 16:
      return DataType::int16;
    case kInt * 256 + 32:
      return DataType::int32;
    case kInt * 256 + 64:
      return DataType::int64;
    case kUnsigned * 256 + 8:
    case kBool * 256 + 8:
      return DataType::uint8;
    default:
      return {};
  }
}

/// Elements of a tensor; nothing where they do not lie behind each other.
std::optional<std::size_t> contiguous_count(const DlTensor& tensor) {
  std::int64_t count = 1;
  for (std::int32_t axis = tensor.axes - 1; axis >= 0; --axis) {
    if (tensor.strides != nullptr && tensor.shape[axis] > 1 && tensor.strides[axis] != count) return {};
    count *= tensor.shape[axis];
  }
  return static_cast<std::size_t>(count);
}

std::shared_ptr<void> owner_of(DlManagedTensor* managed) {
  return {managed, [](DlManagedTensor* tensor) {
            if (tensor->deleter == nullptr || Py_IsInitialized() == 0) return;
            const py::gil_scoped_acquire acquire;
            tensor->deleter(tensor);
          }};
}

/// Lets go of it under the GIL, unless the interpreter has ended.
std::shared_ptr<void> owner_of(const py::object& object) {
  return {object.inc_ref().ptr(), [](PyObject* owner) {
            if (Py_IsInitialized() == 0) return;
            const py::gil_scoped_acquire acquire;
            Py_DECREF(owner);
          }};
}

}  // namespace

ArrayView::ArrayView(std::uintptr_t address, std::size_t count, DataType type, const py::object& owner)
    : owner_(owner_of(owner)), data_(reinterpret_cast<void*>(address)), count_(count), type_(type) {}

ArrayView::ArrayView(const py::capsule& capsule, std::uintptr_t stream) {
  auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (managed == nullptr) throw py::error_already_set();
  // The protocol's way to say that the tensor has a new owner.
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  owner_ = owner_of(managed);
  const DlTensor& tensor = managed->tensor;
  if (tensor.device.type == kCuda || tensor.device.type == kCudaManaged) {
    device_ = tensor.device.number;
    stream_ = reinterpret_cast<void*>(stream);
  } else if (tensor.device.type != kCpu && tensor.device.type != kPinned) {
    throw Error(ErrorKind::config,
                "the array lies on a device of DLPack's type " + std::to_string(tensor.device.type) +
                    ", and collectives work in the memory of the host and on GPUs of CUDA's",
                "copy it: tensor.cpu()");
  }
  const auto type = type_of(tensor.type);
  if (!type) {
    throw Error(ErrorKind::config,
                "the array's elements (DLPack code " + std::to_string(tensor.type.code) + ", " +
                    std::to_string(tensor.type.bits) + " bits) have a type that collectives do not support",
                "use float16, bfloat16, float32, float64, int8, int16, int32, int64 or uint8");
  }
  const auto count = contiguous_count(tensor);
  if (!count) {
    throw Error(ErrorKind::config, "the array is not contiguous",
                "make it contiguous: numpy.ascontiguousarray(array), or tensor.contiguous()");
  }
  data_ = static_cast<char*>(tensor.data) + tensor.offset;
  count_ = *count;
  type_ = *type;
}

}  // namespace fleetrun::python
