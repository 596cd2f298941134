#include "runtime/engine/operators/second_gradients.h"

namespace fleetrun::engine {

std::string differentiated_type(const Operator& op) {
  return op.type.substr(0, op.type.size() - std::string_view("_grad").size());
}

std::string unused_name(const GradientBuilder& builder, const std::string& base) {
  for (int k = 0;; ++k) {
    std::string name = base + "@SECOND@" + std::to_string(k);
    if (!builder.program().has_variable(name)) return name;
  }
}

std::string append_new(GradientBuilder& builder, const std::string& type, std::vector<std::string> inputs,
                       const std::map<std::string, Attribute>& attributes) {
  std::string name = unused_name(builder, inputs[0]);
  builder.append({.type = type, .inputs = std::move(inputs), .outputs = {name}, .attributes = attributes});
  return name;
}

std::string gradient_or_zeros(GradientBuilder& builder, std::size_t output, const std::string& like) {
  std::string there = builder.output_gradient(output);
  if (!there.empty()) return there;
  return append_new(builder, "fill_any_like", {like});
}

namespace {

/// The operator that was differentiated, of ddX in X's place; without `dropped` inputs behind X.
void of_first(GradientBuilder& builder, std::size_t dropped) {
  const Operator& op = builder.op();
  const std::size_t last = op.inputs.size() - 1;
  if (!builder.wants(last)) return;
  Operator forward{.type = differentiated_type(op),
                   .inputs = {builder.output_gradient(0)},
                   .outputs = {builder.input_gradient(last)},
                   .attributes = op.attributes};
  for (std::size_t i = 1 + dropped; i < last; ++i) forward.inputs.push_back(op.inputs[i]);
  builder.append(std::move(forward));
}

}  // namespace

void gradient_of_linear(GradientBuilder& builder) {
  of_first(builder, 0);
}

void gradient_of_reduction(GradientBuilder& builder) {
  of_first(builder, 1);
}

void gradient_of_product(GradientBuilder& builder) {
  const Operator op = builder.op();
  const std::string &x = op.inputs[0], &y = op.inputs[1], &g = op.inputs[2];
  const std::string ddx = builder.output_gradient(0), ddy = builder.output_gradient(1);
  const std::string ddbias = op.outputs.size() > 2 ? builder.output_gradient(2) : std::string();
  const auto product = [&](std::vector<std::string> inputs) {
    builder.append({.type = differentiated_type(op),
                    .inputs = std::move(inputs),
                    .outputs = {builder.input_gradient(2)},
                    .attributes = op.attributes});
  };
  if (builder.wants(2)) {
    if (!ddbias.empty()) product({gradient_or_zeros(builder, 0, x), y, ddbias});
    if (!ddx.empty() && ddbias.empty()) product({ddx, y});
    if (!ddy.empty()) product({x, ddy});
  }
  const auto gradient = [&](std::vector<std::string> inputs, std::vector<std::string> outputs) {
    outputs.resize(op.outputs.size());
    builder.append({.type = op.type,
                    .inputs = std::move(inputs),
                    .outputs = std::move(outputs),
                    .attributes = op.attributes});
  };
  if (!ddy.empty() && builder.wants(0)) gradient({x, ddy, g}, {builder.input_gradient(0)});
  if (!ddx.empty() && builder.wants(1)) gradient({ddx, y, g}, {"", builder.input_gradient(1)});
}

void gradient_of_sum(GradientBuilder& builder) {
  const Operator op = builder.op();
  if (!builder.wants(2)) return;
  const std::string ddx = gradient_or_zeros(builder, 0, op.inputs[0]);
  const std::string ddy = gradient_or_zeros(builder, 1, op.inputs[1]);
  builder.append({.type = differentiated_type(op),
                  .inputs = {ddx, ddy},
                  .outputs = {builder.input_gradient(2)},
                  .attributes = op.attributes});
}

void gradient_of_join(GradientBuilder& builder) {
  const Operator op = builder.op();
  if (!builder.wants(0)) return;
  std::vector<std::string> parts;
  for (std::size_t i = 1; i < op.inputs.size(); ++i) {
    parts.push_back(gradient_or_zeros(builder, i - 1, op.inputs[i]));
  }
  builder.append({.type = differentiated_type(op),
                  .inputs = std::move(parts),
                  .outputs = {builder.input_gradient(0)},
                  .attributes = op.attributes});
}

void gradient_of_split(GradientBuilder& builder) {
  const Operator op = builder.op();
  Operator split{.type = differentiated_type(op),
                 .inputs = {builder.output_gradient(0)},
                 .outputs = {},
                 .attributes = op.attributes};
  for (std::size_t i = 1; i < op.inputs.size(); ++i) {
    split.outputs.push_back(builder.wants(i) ? builder.input_gradient(i)
                                             : unused_name(builder, op.inputs[0] + std::to_string(i)));
  }
  builder.append(std::move(split));
}

void gradient_of_quotient(GradientBuilder& builder) {
  const Operator op = builder.op();
  const std::string &x = op.inputs[0], &y = op.inputs[1], &g = op.inputs[2];
  const std::string ddx = builder.output_gradient(0), ddy = builder.output_gradient(1);
  const auto append = [&](const char* type, std::vector<std::string> inputs, std::vector<std::string> outputs,
                          const std::map<std::string, Attribute>& attributes) {
    builder.append(
        {.type = type, .inputs = std::move(inputs), .outputs = std::move(outputs), .attributes = attributes});
  };
  if (!ddx.empty() && builder.wants(2))
    append("elementwise_div", {ddx, y}, {builder.input_gradient(2)}, op.attributes);
  if (!ddx.empty() && builder.wants(1))
    append("elementwise_div_grad", {ddx, y, g}, {"", builder.input_gradient(1)}, op.attributes);
  if (ddy.empty()) return;
  const std::string u = append_new(builder, "elementwise_div", {ddy, y});
  if (builder.wants(2)) {
    const std::string ratio = append_new(builder, "elementwise_div", {x, y}, op.attributes);
    const std::string product = append_new(builder, "elementwise_mul", {ratio, u}, op.attributes);
    append("scale", {product}, {builder.input_gradient(2)}, {{"scale", -1.0}});
  }
  const std::string of_g = append_new(builder, "elementwise_mul", {g, u}, op.attributes);
  if (builder.wants(0)) {
    const std::string minus = append_new(builder, "scale", {of_g}, {{"scale", -1.0}});
    append("elementwise_div_grad", {x, y, minus}, {builder.input_gradient(0), ""}, op.attributes);
  }
  if (builder.wants(1)) {
    const std::string twice = append_new(builder, "scale", {of_g}, {{"scale", -2.0}});
    append("elementwise_div_grad", {x, y, twice}, {"", builder.input_gradient(1)}, op.attributes);
  }
}

void gradient_of_choice(GradientBuilder& builder) {
  const Operator op = builder.op();
  if (!builder.wants(2)) return;
  const std::string &x = op.inputs[0], &y = op.inputs[1];
  const std::string type(to_string(builder.program().variable(x).type));
  const std::string taken = append_new(
      builder, op.type == "elementwise_max_grad" ? "greater_than" : "less_than", {x, y}, op.attributes);
  const std::string share = append_new(builder, "cast", {taken}, {{"dtype", type}});
  if (const std::string ddx = builder.output_gradient(0); !ddx.empty()) {
    builder.append({.type = "elementwise_mul",
                    .inputs = {share, ddx},
                    .outputs = {builder.input_gradient(2)},
                    .attributes = {}});
  }
  if (const std::string ddy = builder.output_gradient(1); !ddy.empty()) {
    const std::string rest = append_new(builder, "scale", {share}, {{"scale", -1.0}, {"bias", 1.0}});
    builder.append({.type = "elementwise_mul",
                    .inputs = {rest, ddy},
                    .outputs = {builder.input_gradient(2)},
                    .attributes = op.attributes});
  }
}

void gradient_of_where(GradientBuilder& builder) {
  const Operator op = builder.op();
  if (!builder.wants(1)) return;
  const std::string ddx = gradient_or_zeros(builder, 0, op.inputs[1]);
  const std::string ddy = gradient_or_zeros(builder, 1, op.inputs[1]);
  builder.append({.type = "where",
                  .inputs = {op.inputs[0], ddx, ddy},
                  .outputs = {builder.input_gradient(1)},
                  .attributes = {}});
}

}  // namespace fleetrun::engine
