#include "runtime/inference/inference_model.h"

#include <filesystem>
#include <set>
#include <span>
#include <utility>

#include "ps/saving/manifest.h"
#include "ps/saving/part_loader.h"
#include "runtime/base/error.h"
#include "runtime/engine/operators.h"
#include "runtime/inference/model_file.h"
#include "runtime/inference/tensor_file.h"

namespace fleetrun::inference {
namespace {

/// The rows of a saved model. A key that was never trained has the initial values of its row, as in training.
class SavedRows : public engine::RowSource {
 public:
  SavedRows(const std::string& directory, const std::vector<ps::TableConfig>& tables) {
    const auto manifest = ps::read_manifest(ps::manifest_path(directory));
    if (!manifest)
      throw Error(ErrorKind::data, directory + " holds no saved tables",
                  "the servers wrote them there, each on its own host: bring all parts together");
    if (manifest->mode == ps::SaveMode::changes)
      throw Error(ErrorKind::config, directory + " holds what has changed since an export, and not all rows",
                  "load the exports into servers in their order, and save the model from there");
    tables_ = ps::load_parts(directory, *manifest, {.rank = 0, .servers = 1, .memory = {}}, tables).tables;
    for (const ps::TableConfig& table : tables)
      if (table.kind == ps::TableConfig::Kind::sparse) ids_[table.name] = table.id;
  }

  bool has(const std::string& parameter) const { return ids_.contains(parameter); }

  void pull_rows(const std::string& parameter, std::span<const std::uint64_t> keys,
                 std::span<float> rows) override {
    tables_->sparse(ids_.at(parameter)).pull(keys, rows.data(), false);
  }

 private:
  std::unique_ptr<ps::TableSet> tables_;
  std::map<std::string, std::uint32_t> ids_;
};

/// The parameters whose rows are in tables.
std::set<std::string> looked_up(const engine::Program& program) {
  std::set<std::string> names;
  for (const engine::Operator& op : program.operators())
    if (op.type == "sparse_embedding") names.insert(engine::attribute<std::string>(op, "parameter"));
  return names;
}

/// Throws: Error(data) for a parameter without a value, or with one of another type or shape.
void set_values(const engine::Program& program, std::map<std::string, engine::Tensor> values,
                const std::string& path, engine::Scope& scope) {
  const std::set<std::string> rows = looked_up(program);
  for (const auto& [name, variable] : program.variables()) {
    if (!variable.persistable || variable.is_data || rows.contains(name)) continue;
    const auto found = values.find(name);
    const std::string wanted =
        std::string(to_string(variable.type)) + " " + engine::to_string(variable.shape);
    if (found == values.end())
      throw Error(ErrorKind::data, path + " has no " + name + ", which the model needs: " + wanted,
                  "it belongs to another model");
    const engine::Tensor& value = found->second;
    if (value.type() != variable.type || value.shape() != variable.shape)
      throw Error(ErrorKind::data,
                  path + ": " + name + " is " + std::string(to_string(value.type())) + " " +
                      engine::to_string(value.shape()) + " there, " + wanted + " in the model",
                  "it belongs to another model");
    scope.tensor(name) = std::move(found->second);
  }
}

}  // namespace

struct InferenceModel::State {
  ModelFile file;
  mutable engine::Scope scope;  // predictors read it
  std::unique_ptr<SavedRows> rows;
};

InferenceModel::InferenceModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
InferenceModel::InferenceModel(InferenceModel&&) noexcept = default;
InferenceModel::~InferenceModel() = default;

InferenceModel InferenceModel::load(const std::string& path) {
  const bool is_folder = std::filesystem::is_directory(path);
  const std::string prefix = is_folder ? path + "/model" : path;
  auto state = std::make_unique<State>();
  state->file = read_model(prefix + ".pdmodel");
  const engine::Program& program = state->file.program;
  engine::check_values_are_made(program);
  set_values(program, read_tensors(prefix + ".pdiparams"), prefix + ".pdiparams", state->scope);
  if (!state->file.tables.empty())
    state->rows = std::make_unique<SavedRows>(
        (std::filesystem::path(prefix).parent_path() / "tables").string(), state->file.tables);
  for (const std::string& parameter : looked_up(program)) {
    if (!state->rows || !state->rows->has(parameter))
      throw Error(ErrorKind::data, prefix + ".pdmodel looks up rows of " + parameter + ", which has no table",
                  "save the model again, with fleet.save_inference_model");
  }
  return InferenceModel(std::move(state));
}

const engine::Program& InferenceModel::program() const noexcept {
  return state_->file.program;
}
const std::vector<std::string>& InferenceModel::feeds() const noexcept {
  return state_->file.feeds;
}
const std::vector<std::string>& InferenceModel::fetches() const noexcept {
  return state_->file.fetches;
}

Predictor::Predictor(const InferenceModel& model)
    : executor_(model.state_->file.program, model.state_->scope, model.state_->rows.get()) {}

}  // namespace fleetrun::inference
