// The parts of the native module `fleetrun._native`, one per source file, and what they share.
//
// Bindings are thin: one call here is one call in C++. What a script sees, its defaults and its checks are in
// the Python files beside this one.
#pragma once

#include <memory>
#include <string>

#include "runtime/engine/tensor.h"
#include "runtime/python/conversions.h"

namespace fleetrun::python {

void bind_arrays(nb::module_& module);
void bind_collective(nb::module_& module);
void bind_collective_training(nb::module_& module);
void bind_columnar(nb::module_& module);
void bind_engine(nb::module_& module);
void bind_dataset(nb::module_& module);
void bind_file_queue(nb::module_& module);
void bind_replicas(nb::module_& module);
void bind_training(nb::module_& module);
void bind_tables(nb::module_& module);
void bind_ps(nb::module_& module);
void bind_ps_arrays(nb::module_& module);
void bind_batches(nb::module_& module);
void bind_memory_dataset(nb::module_& module);

/// What Python gets of a tensor: a copy, which numpy.asarray() takes as it is.
std::shared_ptr<engine::Tensor> copy_of(const engine::Tensor& tensor);
/// The same of variable `name`. Throws: Error(config) when it has no value.
std::shared_ptr<engine::Tensor> value_of(const engine::Tensor& tensor, const std::string& name);
/// Copies an array. Throws: Error(config) naming an element type that tensors do not have, or for an array
/// that is not C-contiguous.
void assign(engine::Tensor& tensor, const Buffer& values);

}  // namespace fleetrun::python
