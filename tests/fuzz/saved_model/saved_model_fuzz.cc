// Any bytes, as the files of a saved model: no crash, no more memory than the file is worth, nothing but an
// Error for what is damaged. A program that is taken is run once, on small values,
// when all that it declares is small.
//
// Built with -Dfuzz=enabled and clang, it is a libFuzzer target; saved_model_replay runs it over the corpus
// in every build. The last byte is not of the file: it says whether the others are a program,
// tensors, or a program's list of tables.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"
#include "runtime/engine/executor.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/operators/typed.h"
#include "runtime/inference/model_file.h"
#include "runtime/inference/table_text.h"
#include "runtime/inference/tensor_file.h"
#include "tests/fuzz/small_program.h"

using namespace fleetrun;
using namespace fleetrun::inference;

namespace {

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "saved_model_fuzz: %s\n", what);
  std::abort();
}

/// 0, 1, 2, 0, … of the variable's type; a slot's values belong to its examples unevenly.
engine::Tensor values_of(const engine::Variable& variable) {
  engine::Tensor tensor(variable.type, fuzz::small(variable.shape));
  engine::with_type(variable.type, [&tensor]<class T>(T) {
    int next = 0;
    for (T& value : tensor.values<T>()) value = static_cast<T>(next++ % 3);
  });
  const auto rows = tensor.shape().empty() ? std::size_t{0} : static_cast<std::size_t>(tensor.shape()[0]);
  if (variable.lod_level > 0) tensor.offsets = {0, rows / 2, rows / 2, rows};
  return tensor;
}

struct HalfRows : engine::RowSource {
  void pull_rows(const std::string&, std::span<const std::uint64_t>, std::span<float> rows) override {
    std::fill(rows.begin(), rows.end(), 0.5F);
  }
};

void run(const engine::Program& program) {
  if (!fuzz::is_small(program)) return;
  engine::Scope scope;
  std::map<std::string, engine::Tensor> fed;
  for (const auto& [name, variable] : program.variables()) {
    if (variable.is_data) {
      fed.emplace(name, values_of(variable));
    } else if (variable.persistable) {
      scope.tensor(name) = values_of(variable);
    }
  }
  std::map<std::string, const engine::Tensor*> feed;
  for (const auto& [name, tensor] : fed) feed.emplace(name, &tensor);
  HalfRows rows;
  engine::Executor(program, scope, &rows).run(feed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const unsigned kind = data[size - 1] % 3;
  const std::string bytes(reinterpret_cast<const char*>(data), size - 1);
  const UniqueFd file(::memfd_create("model", MFD_CLOEXEC));
  check(::write(file.value(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
        "no memory file");
  const std::string path = "/proc/self/fd/" + std::to_string(file.value());
  try {
    if (kind == 0) run(read_model(path).program);
    if (kind == 1) {
      std::size_t all = 0;
      for (const auto& [name, tensor] : read_tensors(path)) all += tensor.bytes();
      check(all <= bytes.size(), "more values than the file has");
    }
    if (kind == 2) table_text(parse_tables(bytes));
  } catch (const Error&) {
  }
  return 0;
}
