#include "dataset/schema/schema_rows.h"

#include <utility>

#include "runtime/base/text.h"

namespace fleetrun::dataset {

SchemaRows::SchemaRows(const Schema& schema, std::size_t max_line_bytes)
    : schema_(schema), max_line_bytes_(max_line_bytes), lines_(schema.delimiter) {}

SchemaRows::Outcome SchemaRows::next() {
  while (lines_.next()) {
    if (std::exchange(skipping_, false)) continue;
    const bool header = schema_.header && lines_.line_number() == 1;
    if (!(header ? check_header() : check_line())) return Outcome::bad;
    if (!header) return Outcome::row;
  }
  if (skipping_) lines_.drop_waiting();
  if (lines_.waiting() <= max_line_bytes_) return Outcome::more;
  fault_ = {lines_.line_number() + 1, max_line_bytes_ + 1, "",
            "the line is longer than " + std::to_string(max_line_bytes_) + " bytes"};
  return Outcome::bad;
}

void SchemaRows::skip_bad_line() noexcept {
  skipping_ = fault_.line > lines_.line_number();
}

bool SchemaRows::check_line() {
  const std::size_t wanted = schema_.columns.size();
  if (lines_.line().size() > max_line_bytes_)
    return fail_line(max_line_bytes_,
                     "the line is longer than " + std::to_string(max_line_bytes_) + " bytes");
  if (lines_.fields() == wanted && (wanted > 1 || !lines_.line().empty())) return true;
  if (lines_.line().empty()) return fail_line(0, "the line is empty");
  const std::string counts = std::to_string(lines_.fields()) +
                             (lines_.fields() == 1 ? " column" : " columns") + " where the schema has " +
                             std::to_string(wanted);
  if (lines_.fields() < wanted)
    return fail_line(lines_.line().size(),
                     counts + ": '" + printable(schema_.columns[lines_.fields()]) + "' is missing");
  return fail_line(static_cast<std::size_t>(lines_.field(wanted).data() - lines_.line().data()), counts);
}

bool SchemaRows::check_header() {
  if (!check_line()) return false;
  for (std::size_t i = 0; i < schema_.columns.size(); ++i) {
    const bool is_index = i == 0 && lines_.field(i).empty();  // as pandas writes it
    if (is_index || lines_.field(i) == schema_.columns[i]) continue;
    fail(i, "the header names it '" + printable(lines_.field(i), 40) + "'");
    return false;
  }
  return true;
}

void SchemaRows::fail(std::size_t column, const std::string& what) {
  fail_line(static_cast<std::size_t>(lines_.field(column).data() - lines_.line().data()),
            "column '" + printable(schema_.columns[column]) + "': " + what);
}

bool SchemaRows::fail_line(std::size_t at, const std::string& what) {
  fault_ = {lines_.line_number(), at + 1, "", what};
  return false;
}

}  // namespace fleetrun::dataset
