// Tensors as buffers (PEP 3118) and back; values are copied. numpy reads and makes buffers, and is not needed
// to build: the memory layout of its own types changes with its versions.

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/python/bindings.h"

namespace fleetrun::python {

namespace {

using engine::DataType;
using engine::Tensor;

const char* format_of(DataType type) {
  switch (type) {
    case DataType::float32:
      return "f";
    case DataType::float64:
      return "d";
    case DataType::int32:
      return "i";
    case DataType::int64:
      return "q";
    case DataType::boolean:
      break;
  }
  return "?";
}

DataType type_of(const Py_buffer& buffer) {
  const std::string format = buffer.format == nullptr ? "B" : buffer.format;
  const char kind = format.size() == 1 ? format.front() : '\0';
  if (kind == 'f') return DataType::float32;
  if (kind == 'd') return DataType::float64;
  if (kind == '?') return DataType::boolean;
  if ((kind == 'i' || kind == 'l' || kind == 'q') && buffer.itemsize == 4) return DataType::int32;
  if ((kind == 'i' || kind == 'l' || kind == 'q') && buffer.itemsize == 8) return DataType::int64;
  throw Error(ErrorKind::config, "an array of element type '" + format + "' cannot be a tensor",
              "convert it with .astype to float32, float64, int32, int64 or bool");
}

/// The memory of a Tensor; its shape is that of the tensor, which Python cannot change.
int lend(PyObject* object, Py_buffer* view, int) {
  Tensor& tensor = *nb::inst_ptr<Tensor>(object);
  const int axes = static_cast<int>(tensor.shape().size());
  const auto item = static_cast<int>(size_of(tensor.type()));
  auto* const shape = const_cast<Py_ssize_t*>(tensor.shape().data());
  auto* const strides = new Py_ssize_t[tensor.shape().size()];
  PyBuffer_FillContiguousStrides(axes, shape, strides, item, 'C');
  *view = {.buf = tensor.data(),
           .obj = Py_NewRef(object),
           .len = static_cast<Py_ssize_t>(tensor.bytes()),
           .itemsize = item,
           .readonly = 0,
           .ndim = axes,
           .format = const_cast<char*>(format_of(tensor.type())),
           .shape = shape,
           .strides = strides,
           .suboffsets = nullptr,
           .internal = strides};
  return 0;
}

void take_back(PyObject*, Py_buffer* view) {
  delete[] static_cast<Py_ssize_t*>(view->internal);
}

const PyType_Slot kSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(lend)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(take_back)},
                              {0, nullptr}};

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

void assign(Tensor& tensor, const Buffer& values) {
  const Py_buffer& view = values.view();
  tensor.resize(type_of(view), engine::Shape(view.shape, view.shape + view.ndim));
  tensor.offsets.clear();
  if (tensor.bytes() != 0) std::memcpy(tensor.data(), values.contiguous().buf, tensor.bytes());
}

void bind_arrays(nb::module_& module) {
  nb::class_<Tensor>(module, "Tensor", nb::type_slots(kSlots),
                     "Values of the engine: numpy.asarray() takes them without a "
                     "copy, float32, float64, int32, int64 or bool.")
      .def_ro("offsets", &Tensor::offsets,
              "Where each example begins, and the last one ends; [] for one value per example.");
}

}  // namespace fleetrun::python
