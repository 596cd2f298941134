#include "runtime/python/array_view.h"

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/error.h"

namespace fleetrun::python {

namespace {

using collective::DataType;

std::optional<DataType> type_of(const nb::dlpack::dtype& type) {
  using enum nb::dlpack::dtype_code;
  if (type.lanes != 1) return {};
  const auto is = [&](nb::dlpack::dtype_code code, int bits) {
    return type.code == static_cast<std::uint8_t>(code) && type.bits == bits;
  };
  if (is(Float, 32)) return DataType::float32;
  if (is(Float, 64)) return DataType::float64;
  if (is(Float, 16)) return DataType::float16;
  if (is(Bfloat, 16)) return DataType::bfloat16;
  if (is(Int, 8)) return DataType::int8;
  if (is(Int, 16)) return DataType::int16;
  if (is(Int, 32)) return DataType::int32;
  if (is(Int, 64)) return DataType::int64;
  if (is(UInt, 8) || is(Bool, 8)) return DataType::uint8;
  return {};
}

bool is_contiguous(const nb::ndarray<>& array) {
  std::int64_t count = 1;
  for (std::size_t axis = array.ndim(); axis-- > 0;) {
    if (array.shape(axis) > 1 && array.stride(axis) != count) return false;
    count *= static_cast<std::int64_t>(array.shape(axis));
  }
  return true;
}

}  // namespace

ArrayView::ArrayView(std::uintptr_t address, std::size_t count, DataType type, const nb::object& owner)
    : owner_(kept(owner)), data_(reinterpret_cast<void*>(address)), count_(count), type_(type) {}

ArrayView::ArrayView(const nb::ndarray<>& array, std::uintptr_t stream) : owner_(kept(array)) {
  const int device = array.device_type();
  if (device == nb::device::cuda::value || device == nb::device::cuda_managed::value) {
    device_ = array.device_id();
    stream_ = reinterpret_cast<void*>(stream);
  } else if (device != nb::device::cpu::value && device != nb::device::cuda_host::value) {
    throw Error(ErrorKind::config,
                "the array lies on a device of DLPack's type " + std::to_string(device) +
                    ", and collectives work in the memory of the host and on GPUs of CUDA's",
                "copy it: tensor.cpu()");
  }
  const auto type = type_of(array.dtype());
  if (!type) {
    throw Error(ErrorKind::config,
                "the array's elements (DLPack code " + std::to_string(array.dtype().code) + ", " +
                    std::to_string(array.dtype().bits) + " bits) have a type that collectives do not support",
                "use float16, bfloat16, float32, float64, int8, int16, int32, int64 or uint8");
  }
  if (!is_contiguous(array)) {
    throw Error(ErrorKind::config, "the array is not contiguous",
                "make it contiguous: numpy.ascontiguousarray(array), or tensor.contiguous()");
  }
  data_ = array.data();
  count_ = array.size();
  type_ = *type;
}

}  // namespace fleetrun::python
