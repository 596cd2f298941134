#include "runtime/inference/model_file.h"

#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/engine/operators.h"
#include "runtime/engine/operators/all_operators.h"
#include "runtime/inference/table_text.h"

namespace fleetrun::inference {
namespace {

using engine::Attribute;
using nlohmann::json;

constexpr const char* kFormat = "fleetrun program 1";
constexpr const char* kHint = "save the model again, with fleetrun's save_inference_model";

/// Numbers that JSON has no word for are written {"float": "inf"}.
double number_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string name = value.at("float");
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "-inf") return -std::numeric_limits<double>::infinity();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw Error(ErrorKind::data, "an attribute is the number '" + name + "'");
}

Attribute list_of(const json& values) {
  if (values.empty()) return std::vector<std::int64_t>{};
  if (values[0].is_string()) return values.get<std::vector<std::string>>();
  bool whole = true;
  for (const json& value : values) whole = whole && value.is_number_integer();
  if (whole) return values.get<std::vector<std::int64_t>>();
  std::vector<double> numbers;
  for (const json& value : values) numbers.push_back(number_of(value));
  return numbers;
}

Attribute attribute_of(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) return list_of(value);
  return number_of(value);
}

engine::Variable variable_of(const json& entry) {
  engine::Variable variable;
  variable.name = entry.at("name");
  variable.type = engine::parse_data_type(entry.at("type").get<std::string>());
  variable.shape = entry.at("shape").get<engine::Shape>();
  variable.lod_level = entry.at("lod_level");
  variable.persistable = entry.at("persistable");
  variable.trainable = entry.at("trainable");
  variable.stop_gradient = entry.at("stop_gradient");
  variable.is_data = entry.at("is_data");
  return variable;
}

engine::Operator operator_of(const engine::Program& program, const json& entry) {
  engine::Operator op;
  op.type = entry.at("type");
  op.inputs = entry.at("inputs").get<std::vector<std::string>>();
  op.outputs = entry.at("outputs").get<std::vector<std::string>>();
  engine::check_from_outside(program, op);
  for (const auto& [name, value] : entry.at("attributes").items())
    op.attributes.emplace(name, attribute_of(value));
  return op;
}

ModelFile model_of(const json& text) {
  ModelFile model;
  for (const json& entry : text.at("variables")) model.program.add_variable(variable_of(entry));
  for (const json& entry : text.at("operators")) model.program.append(operator_of(model.program, entry));
  model.feeds = text.at("feeds").get<std::vector<std::string>>();
  model.fetches = text.at("fetches").get<std::vector<std::string>>();
  if (text.contains("tables")) model.tables = parse_tables(json_text(text.at("tables")));
  for (const std::string& name : model.feeds) model.program.variable(name);
  for (const std::string& name : model.fetches) model.program.variable(name);
  return model;
}

}  // namespace

ModelFile read_model(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw Error(ErrorKind::data, path + " cannot be read",
                "give the PREFIX of save_inference_model, or the folder of fleet.save_inference_model");
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const json text = read_json<json>(bytes);
  if (!text.is_object() || text.value("format", json()) != kFormat)
    throw Error(ErrorKind::data, path + " is not a program of fleetrun",
                "a .pdmodel that Paddle wrote holds Paddle's operators; save it with fleetrun's "
                "save_inference_model");
  try {
    return model_of(text);
  } catch (const json::exception& error) {
    throw Error(ErrorKind::data, path + " is damaged: " + error.what(), kHint);
  } catch (const Error& error) {
    throw Error(ErrorKind::data, path + " is damaged: " + error.what(), kHint);
  }
}

}  // namespace fleetrun::inference
