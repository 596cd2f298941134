// lookup -> (sequence_pool, reshape …) -> concat  becomes  lookup_concat, for all parts
//                                                          of the concat that allow it; the
// others are copied. Backwards, concat_grad -> (reshape_like, sequence_pool_grad …) -> row_gradient becomes
// lookup_concat_rows on the concat's gradient, and what is copied gets its columns by concat_part.
//
// A lookup is left alone when its rows are read elsewhere too, when its parameter's gradient is dense or has
// rows of other lookups, or when rows begin with statistics.

#include <algorithm>

#include "runtime/engine/operators.h"
#include "runtime/engine/passes/rewrite.h"

namespace fleetrun::engine {

namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// One input of the concat.
struct Part {
  std::string name;
  std::int64_t begin = 0;
  std::int64_t width = 0;
  /// Operators from the lookup to the last before the concat; empty for a part that is copied.
  std::vector<std::size_t> chain = {};
  std::string pool = "copy";
  /// From behind the concat_grad to before the row_gradient.
  std::vector<std::size_t> back = {};
  std::size_t row_gradient = kNone;
};

struct Match {
  std::size_t concat = kNone;
  std::size_t concat_gradient = kNone;
  std::vector<Part> parts = {};
};

bool is_reshaping(const Operator& op) {
  return op.type == "reshape" || op.type == "flatten" || op.type == "squeeze" || op.type == "unsqueeze";
}

bool is_lookup(const Operator& op) {
  return (op.type == "embedding" || op.type == "sparse_embedding") &&
         attribute(op, "statistics", std::int64_t{0}) == 0;
}

const std::string& ids_of(const Operator& lookup) {
  return lookup.inputs[lookup.type == "embedding" ? 1 : 0];
}

/// The values of one example in a shape whose first dimension alone is unknown; -1 for another shape.
std::int64_t values_of_one(const Shape& shape) {
  if (shape.empty() || shape[0] >= 0) return -1;
  return count(std::span(shape).subspan(1));
}

class Matcher {
 public:
  explicit Matcher(const Rewrite& rewrite) : rewrite_(rewrite) {}

  std::optional<Match> match(std::size_t concat) const;

 private:
  bool begins(Match& match) const;
  bool follow_back(std::size_t concat, Part& part) const;
  bool find_gradient(const Match& match, std::size_t index, Part& part) const;
  bool is_alone(const Match& match, const Part& part) const;
  void leave_shared_gradients(Match& match) const;

  const Rewrite& rewrite_;
};

bool Matcher::begins(Match& match) const {
  const Operator& op = rewrite_.op(match.concat);
  if (op.type != "concat") return false;
  const Variable& out = rewrite_.program().variable(op.outputs.at(0));
  const auto axis = attribute(op, "axis", std::int64_t{0});
  if (out.lod_level > 0 || out.shape.size() != 2 || out.type != DataType::float32 ||
      (axis != 1 && axis != -1))
    return false;
  std::int64_t begin = 0;
  for (const std::string& name : op.inputs) {
    const Shape& shape = rewrite_.program().variable(name).shape;
    if (shape.size() != 2 || shape[1] < 0) return false;
    match.parts.push_back({.name = name, .begin = begin, .width = shape[1]});
    begin += shape[1];
    for (const std::size_t reader : rewrite_.readers(name)) {
      const Operator& gradient = rewrite_.op(reader);
      if (gradient.type == "concat_grad" &&
          std::equal(op.inputs.begin(), op.inputs.end(), gradient.inputs.begin() + 1, gradient.inputs.end()))
        match.concat_gradient = reader;
    }
  }
  return true;
}

/// From the concat's input to the lookup.
bool Matcher::follow_back(std::size_t concat, Part& part) const {
  const auto& inputs = rewrite_.op(concat).inputs;
  if (std::ranges::count(inputs, part.name) != 1) return false;
  std::string name = part.name;
  part.pool = "none";
  while (true) {
    if (!rewrite_.is_passing(name)) return false;
    const std::size_t maker = rewrite_.writers(name).front();
    const Operator& op = rewrite_.op(maker);
    if (values_of_one(rewrite_.program().variable(name).shape) != part.width) return false;
    part.chain.insert(part.chain.begin(), maker);
    if (is_lookup(op)) break;
    if (op.type == "sequence_pool" && part.pool == "none") {
      part.pool = attribute(op, "pool_type", std::string("sum"));
      if (part.pool == "mean") part.pool = "average";
      if (part.pool == "max") return false;
    } else if (!is_reshaping(op)) {
      return false;
    }
    name = op.inputs.at(0);
  }
  const Variable& ids = rewrite_.program().variable(ids_of(rewrite_.op(part.chain.front())));
  if (values_of_one(ids.shape) != 1 || (ids.lod_level > 0) != (part.pool != "none")) return false;
  const auto& writers = rewrite_.writers(ids.name);
  return std::ranges::all_of(writers, [&](std::size_t w) { return w < part.chain.front(); });
}

/// From the gradient of the concat's input to the row_gradient; true also when there is no gradient.
bool Matcher::find_gradient(const Match& match, std::size_t index, Part& part) const {
  if (match.concat_gradient == kNone) return true;
  std::string name = rewrite_.op(match.concat_gradient).outputs.at(index);
  if (name.empty()) return true;
  for (std::size_t i = part.chain.size();; --i) {
    if (!rewrite_.is_passing(name) || rewrite_.readers(name).size() != 1) return false;
    const std::size_t reader = rewrite_.readers(name).front();
    const Operator& op = rewrite_.op(reader);
    if (i == 1) {
      const bool plain = op.type == "row_gradient" && attribute(op, "statistics", std::int64_t{0}) == 0;
      part.row_gradient = plain ? reader : kNone;
      return plain;
    }
    const Operator& forward = rewrite_.op(part.chain[i - 1]);
    const std::string wanted = forward.type == "sequence_pool" ? "sequence_pool_grad" : "reshape_like";
    if (op.type != wanted) return false;
    part.back.push_back(reader);
    name = op.outputs.at(0);
  }
}

/// What the chain passes on is read by the chain, the concat and their gradients only.
bool Matcher::is_alone(const Match& match, const Part& part) const {
  for (const std::size_t link : part.chain) {
    for (const std::size_t reader : rewrite_.readers(rewrite_.op(link).outputs.at(0))) {
      const bool own = reader == match.concat || reader == match.concat_gradient ||
                       std::ranges::find(part.chain, reader) != part.chain.end() ||
                       std::ranges::find(part.back, reader) != part.back.end();
      if (!own) return false;
    }
  }
  return true;
}

/// A row_gradient can be replaced only whole.
void Matcher::leave_shared_gradients(Match& match) const {
  for (Part& part : match.parts) {
    if (part.row_gradient == kNone) continue;
    const std::size_t gradient = part.row_gradient;
    const auto ours = std::ranges::count(match.parts, gradient, &Part::row_gradient);
    const std::size_t lookups = rewrite_.op(gradient).inputs.size() / 2;
    const auto& writers = rewrite_.writers(rewrite_.op(match.concat_gradient).inputs.at(0));
    const bool unchanged =
        std::ranges::all_of(writers, [&](std::size_t w) { return w < match.concat_gradient; });
    if (static_cast<std::size_t>(ours) == lookups && unchanged) continue;
    for (Part& other : match.parts) {
      if (other.row_gradient == gradient)
        other = {.name = other.name, .begin = other.begin, .width = other.width};
    }
  }
}

std::optional<Match> Matcher::match(std::size_t concat) const {
  Match match{.concat = concat};
  if (!begins(match)) return std::nullopt;
  for (std::size_t i = 0; i < match.parts.size(); ++i) {
    const Part& copied = match.parts[i];
    Part part = copied;
    if (follow_back(concat, part) && find_gradient(match, i, part) && is_alone(match, part))
      match.parts[i] = part;
  }
  leave_shared_gradients(match);
  if (std::ranges::all_of(match.parts, [](const Part& part) { return part.chain.empty(); }))
    return std::nullopt;
  return match;
}

Operator forward_of(const Rewrite& rewrite, const Match& match) {
  Operator fused = rewrite.op(match.concat);
  fused.type = "lookup_concat";
  fused.inputs.clear();
  std::vector<std::string> pools, parameters;
  std::vector<std::int64_t> widths, paddings;
  std::vector<std::pair<std::size_t, std::int64_t>> order;
  for (std::size_t i = 0; i < match.parts.size(); ++i) {
    const Part& part = match.parts[i];
    const bool copied = part.chain.empty();
    const Operator lookup = copied ? Operator() : rewrite.op(part.chain.front());
    const bool inside = lookup.type == "embedding";
    fused.inputs.push_back(inside ? lookup.inputs[0] : std::string());
    fused.inputs.push_back(copied ? part.name : ids_of(lookup));
    pools.push_back(part.pool);
    widths.push_back(part.width);
    paddings.push_back(attribute(lookup, "padding_idx", std::int64_t{-1}));
    parameters.push_back(attribute(lookup, "parameter", std::string()));
    order.emplace_back(copied ? kNone : part.chain.front(), static_cast<std::int64_t>(i));
  }
  std::ranges::sort(order);
  std::vector<std::int64_t> turns;
  for (const auto& [at, part] : order) turns.push_back(part);
  fused.attributes = {{"pools", pools},
                      {"widths", widths},
                      {"paddings", paddings},
                      {"parameters", parameters},
                      {"order", turns}};
  return fused;
}

void apply_gradients(Rewrite& rewrite, const Match& match) {
  const Operator concat_gradient = rewrite.op(match.concat_gradient);
  const std::string& dx = concat_gradient.inputs.at(0);
  const std::map<std::string, Attribute> role{{std::string(kRoleAttribute), std::string("backward")}};
  std::vector<Operator> copies;
  std::map<std::size_t, std::map<std::string, const Part*>> by_row_gradient;
  for (std::size_t i = 0; i < match.parts.size(); ++i) {
    const Part& part = match.parts[i];
    for (const std::size_t link : part.back) rewrite.drop(link);
    const std::string& own = concat_gradient.outputs.at(i);
    if (part.chain.empty() && !own.empty()) {
      Operator copy{.type = "concat_part", .inputs = {dx}, .outputs = {own}, .attributes = role};
      copy.attributes["begin"] = part.begin;
      copy.attributes["width"] = part.width;
      copies.push_back(std::move(copy));
    }
    if (part.row_gradient == kNone) continue;
    // The row_gradient reads what the last link passes on.
    const std::string& last = part.back.empty() ? own : rewrite.op(part.back.back()).outputs.at(0);
    by_row_gradient[part.row_gradient][last] = &part;
  }
  rewrite.replace(match.concat_gradient, std::move(copies));
  for (const auto& [index, parts] : by_row_gradient) {
    Operator fused = rewrite.op(index);
    std::vector<std::int64_t> begins;
    std::vector<std::string> inputs{dx}, pools;
    for (std::size_t i = 0; i + 1 < fused.inputs.size(); i += 2) {
      const Part& part = *parts.at(fused.inputs[i]);
      begins.push_back(part.begin);
      pools.push_back(part.pool);
      inputs.push_back(fused.inputs[i + 1]);
    }
    fused.type = "lookup_concat_rows";
    fused.inputs = std::move(inputs);
    fused.attributes["begins"] = std::move(begins);
    fused.attributes["pools"] = std::move(pools);
    rewrite.replace(index, {std::move(fused)});
  }
}

void apply(Rewrite& rewrite, const Match& match) {
  Operator forward = forward_of(rewrite, match);
  for (const Part& part : match.parts) {
    for (const std::size_t link : part.chain) rewrite.drop(link);
  }
  rewrite.replace(match.concat, {std::move(forward)});
  if (match.concat_gradient != kNone) apply_gradients(rewrite, match);
}

}  // namespace

Program fuse_lookup_concat(const Program& program, const Kept& kept) {
  Rewrite rewrite(program, kept);
  const Matcher matcher(rewrite);
  for (std::size_t i = 0; i < rewrite.size(); ++i) {
    if (const auto match = matcher.match(i)) apply(rewrite, *match);
  }
  return rewrite.result();
}

}  // namespace fleetrun::engine
