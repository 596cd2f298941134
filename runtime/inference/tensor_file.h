// Named tensors in one file, in the safetensors format: the length of a header as 8 bytes, the header as JSON
// ({name: {dtype, shape, data_offsets}}), the values of all tensors one after the other, little-endian.
// Source: the format's description, https://github.com/huggingface/safetensors.
#pragma once

#include <map>
#include <string>

#include "runtime/engine/tensor.h"

namespace fleetrun::inference {

/// The tensors in the file `path`; float32, float64, int32, int64 and bool.
/// Throws: Error(data) naming the file and what in it is wrong: lengths that disagree, tensors that overlap
/// or leave the file, another type.
std::map<std::string, engine::Tensor> read_tensors(const std::string& path);

}  // namespace fleetrun::inference
