// Tensors as buffers (PEP 3118) and back; values are copied. numpy reads and makes buffers, and is not needed
// to build: the memory layout of its own types changes with its versions.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/python/bindings.h"

namespace fleetrun::python {

namespace {

namespace py = pybind11;
using engine::DataType;
using engine::Tensor;

std::string format_of(DataType type) {
  switch (type) {
    case DataType::float32:
      return py::format_descriptor<float>::format();
    case DataType::float64:
      return py::format_descriptor<double>::format();
    case DataType::int32:
      return py::format_descriptor<std::int32_t>::format();
    case DataType::int64:
      return py::format_descriptor<std::int64_t>::format();
    case DataType::boolean:
      break;
  }
  return py::format_descriptor<bool>::format();
}

DataType type_of(const py::buffer_info& buffer) {
  const char kind = buffer.format.size() == 1 ? buffer.format.front() : '\0';
  if (kind == 'f') return DataType::float32;
  if (kind == 'd') return DataType::float64;
  if (kind == '?') return DataType::boolean;
  if ((kind == 'i' || kind == 'l' || kind == 'q') && buffer.itemsize == 4) return DataType::int32;
  if ((kind == 'i' || kind == 'l' || kind == 'q') && buffer.itemsize == 8) return DataType::int64;
  throw Error(ErrorKind::config, "an array of element type '" + buffer.format + "' cannot be a tensor",
              "convert it with .astype to float32, float64, int32, int64 or bool");
}

std::vector<py::ssize_t> strides_of(const engine::Shape& shape, std::size_t item) {
  std::vector<py::ssize_t> strides(shape.size());
  auto step = static_cast<py::ssize_t>(item);
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

py::buffer_info view(Tensor& tensor) {
  const std::size_t item = size_of(tensor.type());
  return {tensor.data(),
          static_cast<py::ssize_t>(item),
          format_of(tensor.type()),
          static_cast<py::ssize_t>(tensor.shape().size()),
          tensor.shape(),
          strides_of(tensor.shape(), item)};
}

}  // namespace

std::shared_ptr<Tensor> copy_of(const Tensor& tensor) {
  auto copy = std::make_shared<Tensor>(tensor.type(), tensor.shape());
  if (tensor.bytes() != 0) std::memcpy(copy->data(), tensor.data(), tensor.bytes());
  copy->offsets = tensor.offsets;
  return copy;
}

std::shared_ptr<Tensor> value_of(const Tensor& tensor, const std::string& name) {
  if (tensor.data() != nullptr || !tensor.shape().empty()) return copy_of(tensor);
  throw Error(ErrorKind::config, "'" + name + "' has no value",
              "run the start-up program first, and after it the operator that makes it");
}

void assign(Tensor& tensor, const py::buffer& values) {
  const py::buffer_info buffer = values.request();
  const engine::Shape shape(buffer.shape.begin(), buffer.shape.end());
  tensor.resize(type_of(buffer), shape);
  tensor.offsets.clear();
  if (tensor.bytes() == 0) return;
  if (buffer.ndim > 0 && buffer.strides != strides_of(shape, size_of(tensor.type()))) {
    throw Error(ErrorKind::config, "the array is not contiguous", "make a copy with numpy.ascontiguousarray");
  }
  std::memcpy(tensor.data(), buffer.ptr, tensor.bytes());
}

void bind_arrays(py::module_& module) {
  py::class_<Tensor, std::shared_ptr<Tensor>>(module, "Tensor", py::buffer_protocol(),
                                              "Values of the engine: numpy.asarray() takes them without a "
                                              "copy, float32, float64, int32, int64 or bool.")
      .def_buffer(view)
      .def_readonly("offsets", &Tensor::offsets,
                    "Where each example begins, and the last one ends; [] for one value per example.");
}

}  // namespace fleetrun::python
