#include "runtime/engine/program_text.h"

#include <charconv>
#include <cstddef>
#include <type_traits>

#include "runtime/base/error.h"
#include "runtime/engine/operators.h"

namespace fleetrun::engine {

namespace {

class Writer {
 public:
  void put(bool value) { words_.emplace_back(value ? "1" : "0"); }
  void put(std::int64_t value) { words_.push_back(std::to_string(value)); }
  void put(double value) {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    words_.emplace_back(text, end);
  }
  void put(const std::string& value) { words_.push_back(value); }
  template <class T>
  void put(const std::vector<T>& values) {
    put(static_cast<std::int64_t>(values.size()));
    for (const T& value : values) put(value);
  }
  void put(const Attribute& attribute) {
    put(static_cast<std::int64_t>(attribute.index()));
    std::visit([this](const auto& value) { put(value); }, attribute);
  }

  std::vector<std::string> take() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

class Reader {
 public:
  explicit Reader(const std::vector<std::string>& words) : words_(words) {}

  const std::string& word() {
    if (next_ == words_.size()) throw Error(ErrorKind::data, "the words of a loop's body end too early");
    return words_[next_++];
  }
  template <class T>
  T number() {
    const std::string& text = word();
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      throw Error(ErrorKind::data, "'" + text + "' in a loop's body is not a number");
    return value;
  }
  std::size_t size() {
    const auto value = number<std::int64_t>();
    if (value < 0 || static_cast<std::size_t>(value) > words_.size())
      throw Error(ErrorKind::data, "a loop's body has a list of " + std::to_string(value) + " words");
    return static_cast<std::size_t>(value);
  }
  template <class T>
  void get(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = number<int>() != 0;
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = number<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = word();
    } else {
      value.resize(size());
      for (auto& one : value) get(one);
    }
  }
  template <class T>
  T get() {
    T value{};
    get(value);
    return value;
  }
  template <std::size_t kIndex = 0>
  Attribute attribute(std::size_t index) {
    if constexpr (kIndex == std::variant_size_v<Attribute>) {
      throw Error(ErrorKind::data, "a loop's body has an attribute of no known kind");
    } else {
      if (index != kIndex) return attribute<kIndex + 1>(index);
      return get<std::variant_alternative_t<kIndex, Attribute>>();
    }
  }

 private:
  const std::vector<std::string>& words_;
  std::size_t next_ = 0;
};

void write(Writer& writer, const Variable& variable) {
  writer.put(variable.name);
  writer.put(std::string(to_string(variable.type)));
  writer.put(variable.shape);
  writer.put(static_cast<std::int64_t>(variable.lod_level));
  for (const bool flag : {variable.persistable, variable.trainable, variable.stop_gradient, variable.is_data})
    writer.put(flag);
}

Variable read_variable(Reader& reader) {
  Variable variable;
  variable.name = reader.word();
  variable.type = parse_data_type(reader.word());
  variable.shape = reader.get<Shape>();
  variable.lod_level = reader.number<int>();
  for (bool* flag : {&variable.persistable, &variable.trainable, &variable.stop_gradient, &variable.is_data})
    reader.get(*flag);
  return variable;
}

Operator read_operator(Reader& reader) {
  Operator op;
  reader.get(op.type);
  reader.get(op.where);
  reader.get(op.inputs);
  reader.get(op.outputs);
  for (std::size_t left = reader.size(); left > 0; --left) {
    const std::string name = reader.word();
    op.attributes[name] = reader.attribute(reader.size());
  }
  return op;
}

}  // namespace

std::vector<std::string> to_words(const Program& program) {
  Writer writer;
  writer.put(std::to_string(program.random_seed));
  writer.put(static_cast<std::int64_t>(program.variables().size()));
  for (const auto& [name, variable] : program.variables()) write(writer, variable);
  writer.put(static_cast<std::int64_t>(program.operators().size()));
  for (const Operator& op : program.operators()) {
    writer.put(op.type);
    writer.put(op.where);
    writer.put(op.inputs);
    writer.put(op.outputs);
    writer.put(static_cast<std::int64_t>(op.attributes.size()));
    for (const auto& [name, value] : op.attributes) {
      writer.put(name);
      writer.put(value);
    }
  }
  return writer.take();
}

Program program_of_words(const std::vector<std::string>& words) {
  Reader reader(words);
  Program program;
  program.random_seed = reader.number<std::uint64_t>();
  for (std::size_t left = reader.size(); left > 0; --left) program.add_variable(read_variable(reader));
  for (std::size_t left = reader.size(); left > 0; --left)
    program.operators().push_back(read_operator(reader));
  return program;
}

}  // namespace fleetrun::engine
