// The JSON of a schema to a Schema. A Place is a value with the way to it, so that every refusal says where.
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "dataset/schema/schema.h"
#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::dataset {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxColumns = 100000;

class Place {
 public:
  /// `joint` is what stands between `way` and a key of this.
  Place(const json& value, std::string way, std::string joint = ".")
      : value_(value), way_(std::move(way)), joint_(std::move(joint)) {}

  [[noreturn]] void refuse(const std::string& what, const std::string& hint = {}) const {
    throw Error(ErrorKind::config, way_ + ": " + what, hint);
  }
  const json& value() const noexcept { return value_; }

  bool has(const char* key) const { return value_.contains(key); }
  Place at(const char* key) const {
    if (!has(key)) refuse(std::string("\"") + key + "\" is missing");
    return {value_.at(key), way_ + joint_ + key};
  }
  std::vector<Place> items() const {
    if (!value_.is_array()) refuse("a list is wanted, this is " + shown());
    std::vector<Place> places;
    for (std::size_t i = 0; i < value_.size(); ++i)
      places.emplace_back(value_[i], way_ + "[" + std::to_string(i) + "]");
    return places;
  }
  void allow_only(const std::vector<std::string>& keys) const {
    if (!value_.is_object()) refuse("an object is wanted, this is " + shown());
    for (const auto& [key, value] : value_.items()) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      const auto near = nearest(key, keys);
      refuse(
          "there is no \"" + printable(key) + "\" here" + (near ? "; did you mean \"" + *near + "\"?" : ""),
          "known: " + join(keys, ", "));
    }
  }
  std::string text() const {
    if (!value_.is_string()) refuse("a string is wanted, this is " + shown());
    return value_.get<std::string>();
  }
  double number() const {
    if (!value_.is_number()) refuse("a number is wanted, this is " + shown());
    return value_.get<double>();
  }
  std::uint64_t whole() const {
    if (!value_.is_number_unsigned() || value_.get<std::uint64_t>() == 0)
      refuse("a whole number above 0 is wanted, this is " + shown());
    return value_.get<std::uint64_t>();
  }
  bool truth() const {
    if (!value_.is_boolean()) refuse("true or false is wanted, this is " + shown());
    return value_.get<bool>();
  }
  std::string shown() const { return printable(json_text(value_), 60); }

 private:
  const json& value_;
  std::string way_;
  std::string joint_;
};

/// "I1..I13" as I1, I2, …; any other name as it is.
std::vector<std::string> expand(const Place& place) {
  const std::string text = place.text();
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    if (text.empty()) place.refuse("an empty name");
    return {text};
  }
  const std::string first = text.substr(0, dots), last = text.substr(dots + 2);
  const auto digits_at = [](const std::string& name) { return name.find_last_not_of("0123456789") + 1; };
  const std::string stem = first.substr(0, digits_at(first));
  const auto from = parse_integer(first.substr(stem.size())),
             to = parse_integer(last.substr(std::min(last.size(), digits_at(last))));
  if (last.substr(0, digits_at(last)) != stem || !from || !to || *from > *to ||
      *to - *from >= static_cast<std::int64_t>(kMaxColumns))
    place.refuse("'" + printable(text) + "' is not a range such as C1..C26");
  std::vector<std::string> names;
  for (std::int64_t number = *from; number <= *to; ++number) names.push_back(stem + std::to_string(number));
  return names;
}

std::vector<std::string> names_in(const Place& list) {
  std::vector<std::string> names;
  for (const Place& item : list.items())
    for (std::string& name : expand(item)) names.push_back(std::move(name));
  if (names.empty()) list.refuse("an empty list of columns");
  return names;
}

/// A number for each of `count` columns: one for all, or a list of as many.
std::vector<double> numbers(const Place& place, std::size_t count) {
  if (!place.value().is_array()) return std::vector<double>(count, place.number());
  std::vector<double> all;
  for (const Place& item : place.items()) all.push_back(item.number());
  if (all.size() != count)
    place.refuse(std::to_string(all.size()) + " numbers for " + std::to_string(count) + " columns");
  return all;
}

/// What a value is after a step.
enum class ValueForm { text, number, whole };

/// The steps of a slot, read once and given to each of its columns.
class StepReader {
 public:
  StepReader(std::vector<std::string> columns, std::vector<std::vector<Step>>& steps)
      : columns_(std::move(columns)), steps_(steps) {}

  void read(const Place& place) {
    const std::string word = place.value().is_string()                             ? place.text()
                             : place.value().is_object() && !place.value().empty() ? key_of(place)
                                                                                   : "";
    if (word == "log" || word == "square_log") {
      add(place, {.kind = word == "log" ? StepKind::log : StepKind::square_log});
    } else if (word == "normalise") {
      normalise(place);
    } else if (word == "bucket") {
      bucket(place);
    } else if (word == "hash") {
      hash(place);
    } else if (word == "modulo") {
      place.allow_only({"modulo"});
      add(place, {.kind = StepKind::modulo, .modulo = place.at("modulo").whole()});
    } else {
      place.refuse(place.shown() + " is not a step",
                   "known: bucket, hash, log, modulo, normalise, square_log");
    }
  }
  ValueForm form() const noexcept { return form_; }

 private:
  static std::string key_of(const Place& place) {
    for (const char* key : {"normalise", "bucket", "hash"})
      if (place.has(key)) return key;
    return place.has("modulo") ? "modulo" : "";
  }

  void add(const Place& place, const Step& step) {
    if (form_ == ValueForm::number && (step.kind == StepKind::hash || step.kind == StepKind::modulo))
      place.refuse("this needs text or a whole number, the step before it makes a fraction",
                   "put a bucket between them");
    if (step.kind == StepKind::log || step.kind == StepKind::normalise)
      form_ = ValueForm::number;
    else
      form_ = ValueForm::whole;
    for (std::vector<Step>& steps : steps_) steps.push_back(step);
  }

  void normalise(const Place& place) {
    if (!place.value().is_object())
      place.refuse("normalise needs {\"min\": …, \"max\": …} or {\"mean\": …, \"std\": …}");
    place.allow_only({"normalise"});
    const Place bounds = place.at("normalise");
    bounds.allow_only({"min", "max", "mean", "std"});
    const bool by_range = bounds.has("min") || bounds.has("max");
    if (by_range && (bounds.has("mean") || bounds.has("std")))
      bounds.refuse("either min and max, or mean and std");
    const std::size_t count = columns_.size();
    const auto low = numbers(bounds.at(by_range ? "min" : "mean"), count),
               high = numbers(bounds.at(by_range ? "max" : "std"), count);
    add(place, {.kind = StepKind::normalise});
    for (std::size_t i = 0; i < count; ++i) {
      Step& step = steps_[i].back();
      step.offset = low[i];
      step.divisor = by_range ? high[i] - low[i] : high[i];
      if (!(step.divisor > 0))
        bounds.refuse("column '" + columns_[i] + "' would be divided by " + std::to_string(step.divisor));
    }
  }

  void bucket(const Place& place) {
    if (!place.value().is_object())
      place.refuse("bucket needs a list of boundaries: {\"bucket\": [0, 10, 100]}");
    place.allow_only({"bucket"});
    Step step{.kind = StepKind::bucket};
    for (const Place& item : place.at("bucket").items()) {
      step.boundaries.push_back(item.number());
      if (step.boundaries.size() > 1 && step.boundaries.back() <= step.boundaries[step.boundaries.size() - 2])
        item.refuse("boundaries must rise");
    }
    if (step.boundaries.empty()) place.refuse("a bucket without boundaries");
    add(place, step);
  }

  void hash(const Place& place) {
    if (!place.value().is_object())
      place.refuse("hash needs its kind: {\"hash\": \"crc32\"} or {\"hash\": \"fnv1a\"}");
    place.allow_only({"hash", "prefix", "modulo"});
    Step step{.kind = StepKind::hash};
    const std::string kind = place.at("hash").text();
    if (kind != "crc32" && kind != "fnv1a")
      place.at("hash").refuse("'" + printable(kind) + "' is neither crc32 nor fnv1a");
    step.hash = kind == "crc32" ? HashKind::crc32 : HashKind::fnv1a;
    if (place.has("modulo")) step.modulo = place.at("modulo").whole();
    const std::string prefix = place.has("prefix") ? place.at("prefix").text() : "";
    add(place, step);
    constexpr std::string_view mark = "{column}";
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      std::string own = prefix;
      if (const std::size_t at = own.find(mark); at != std::string::npos)
        own.replace(at, mark.size(), columns_[i]);
      steps_[i].back().prefix = own;
    }
  }

  const std::vector<std::string> columns_;
  std::vector<std::vector<Step>>& steps_;
  ValueForm form_ = ValueForm::text;
};

SlotType type_in(const Place& place) {
  const std::string name = place.text();
  if (name == "float32") return SlotType::float32;
  if (name != "int64") place.refuse("'" + printable(name) + "' is neither float32 nor int64");
  return SlotType::int64;
}

double missing_in(const Place& place, SlotType type) {
  const double value = place.number();
  if (type == SlotType::int64 && (value != std::floor(value) || std::abs(value) > 9007199254740992.0))
    place.refuse("an int64 slot needs a whole number of at most 2^53, this is " + place.shown());
  if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max()))
    place.refuse(place.shown() + " is too large for float32");
  return value;
}

/// The slots of one entry: one with all its columns, or with "each" one for each of them.
std::vector<SlotRule> slots_in(const Place& place, const std::vector<std::string>& known) {
  place.allow_only({"name", "each", "type", "columns", "missing", "steps"});
  const bool each = place.has("each");
  if (each && (place.has("name") || place.has("columns")))
    place.refuse("\"each\" makes slots named as their columns: no \"name\" and no \"columns\" beside it");
  const Place list = place.at(each ? "each" : "columns");
  const std::vector<std::string> columns = names_in(list);
  const SlotType type = type_in(place.at("type"));
  std::vector<std::vector<Step>> steps(columns.size());
  StepReader reader(columns, steps);
  if (place.has("steps"))
    for (const Place& step : place.at("steps").items()) reader.read(step);
  if (type == SlotType::int64 && reader.form() == ValueForm::number)
    place.refuse("the last step makes a fraction, and the slot is int64", "make it float32, or add a bucket");
  std::vector<SlotRule> slots(each ? columns.size() : 1);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto column = std::find(known.begin(), known.end(), columns[i]);
    if (column == known.end()) {
      const auto near = nearest(columns[i], known);
      list.refuse("there is no column '" + printable(columns[i]) + "'" +
                  (near ? "; did you mean '" + *near + "'?" : ""));
    }
    SlotRule& slot = slots[each ? i : 0];
    slot.name = each ? columns[i] : place.at("name").text();
    slot.type = type;
    slot.values.push_back(
        {.column = static_cast<std::size_t>(column - known.begin()), .missing = {}, .steps = steps[i]});
    if (place.has("missing")) slot.values.back().missing = missing_in(place.at("missing"), type);
    if (slot.name.empty()) place.at("name").refuse("an empty name");
  }
  return slots;
}

char delimiter_in(const Place& place) {
  const std::string text = place.text();
  constexpr std::string_view no_delimiters = "\n\r\"'.+-_";
  const bool is_word = text.size() == 1 && (std::isalnum(static_cast<unsigned char>(text[0])) != 0 ||
                                            static_cast<unsigned char>(text[0]) >= 0x80);
  if (text.size() != 1 || is_word || no_delimiters.find(text[0]) != std::string_view::npos || text[0] == '\0')
    place.refuse(place.shown() + " cannot part columns",
                 "one byte that no value has, such as \"\\t\", \",\" or \"|\"");
  return text[0];
}

std::vector<std::string> columns_in(const Place& place) {
  if (!place.value().is_number()) return names_in(place);
  const std::uint64_t count = place.whole();
  if (count > kMaxColumns) place.refuse("more than " + std::to_string(kMaxColumns) + " columns");
  std::vector<std::string> names;
  for (std::uint64_t number = 1; number <= count; ++number) names.push_back(std::to_string(number));
  return names;
}

}  // namespace

Schema parse_schema(std::string_view text, const std::string& name) {
  json document;
  try {
    document = parse_json<json>(text);
  } catch (const json::parse_error& error) {
    throw Error(ErrorKind::config, name + ": not JSON: byte " + std::to_string(error.byte),
                "see fleetrun-schema(5)");
  } catch (const json::out_of_range&) {
    throw Error(ErrorKind::config, name + ": a number in it is too large", "see fleetrun-schema(5)");
  }
  const Place root(document, name, ": ");
  root.allow_only({"delimiter", "header", "columns", "slots"});
  Schema schema;
  if (root.has("delimiter")) schema.delimiter = delimiter_in(root.at("delimiter"));
  if (root.has("header")) schema.header = root.at("header").truth();
  schema.columns = columns_in(root.at("columns"));
  if (std::set<std::string> once(schema.columns.begin(), schema.columns.end());
      once.size() != schema.columns.size())
    root.at("columns").refuse("a name that occurs twice");
  std::set<std::string> names;
  for (const Place& entry : root.at("slots").items()) {
    for (SlotRule& slot : slots_in(entry, schema.columns)) {
      if (!names.insert(slot.name).second) entry.refuse("a second slot named '" + printable(slot.name) + "'");
      schema.slots.push_back(std::move(slot));
    }
  }
  if (schema.slots.empty()) root.at("slots").refuse("no slots");
  return schema;
}

Schema read_schema(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) throw Error(ErrorKind::config, "the schema " + printable(file) + " cannot be read");
  return parse_schema(text, file);
}

}  // namespace fleetrun::dataset
