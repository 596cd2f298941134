// What gradient_test.cc compares with differences: a row, and the rows of operators over space and over
// sequences of labels.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/engine/program.h"

namespace fleetrun::engine {

struct Input {
  Shape shape;
  /// Values are drawn from here; int64 when `labels` is above 0 (that many numbers from first_label on, not
  /// differentiated).
  double low = -1.5;
  double high = 1.5;
  std::int64_t labels = 0;
  std::int64_t first_label = 0;
  bool differentiated = true;
  int lod_level = 0;
  std::vector<std::size_t> offsets = {};
  bool boolean = false;
  /// An input that is not given.
  bool missing = false;
};

struct Row {
  std::string type;
  std::vector<Input> inputs;
  std::map<std::string, Attribute> attributes = {};
  std::size_t outputs = 1;
  /// The loss has the first of the outputs; the others are there for the gradient. 0: all.
  std::size_t compared = 0;
};

inline std::vector<Row> resize_rows() {
  using Numbers = std::vector<std::int64_t>;
  const Input image{.shape = {2, 2, 4, 3}};
  std::vector<Row> rows;
  for (const char* method : {"nearest", "linear", "cubic"}) {
    for (const bool aligned : {true, false}) {
      rows.push_back({"interpolate",
                      {image},
                      {{"interp_method", std::string(method)},
                       {"align_corners", aligned},
                       {"align_mode", std::int64_t{0}},
                       {"sizes", Numbers{6, 2}}}});
    }
  }
  rows.push_back(
      {"interpolate",
       {{.shape = {1, 2, 2, 3, 2}}},
       {{"interp_method", std::string("linear")}, {"scales", std::vector<double>{1.5, 2.0, 0.5}}}});
  return rows;
}

inline std::vector<Row> alignment_rows() {
  const auto numbers = [](const Shape& shape, std::int64_t first, std::int64_t below) {
    return Input{.shape = shape, .labels = below - first, .first_label = first, .differentiated = false};
  };
  std::vector<Row> rows;
  for (const std::int64_t blank : {0, 3}) {
    const std::int64_t first = blank == 0 ? 1 : 0;
    rows.push_back(
        {"ctc_loss",
         {{.shape = {5, 2, 4}}, numbers({2, 2}, first, first + 3), numbers({2}, 5, 6), numbers({2}, 1, 3)},
         {{"blank", blank}}});
  }
  return rows;
}

inline std::vector<Row> sequence_recurrent_rows() {
  const auto sequences = [](std::int64_t width) {
    return Input{.shape = {6, width}, .lod_level = 1, .offsets = {0, 2, 2, 6}};
  };
  const Input missing{.shape = {}, .missing = true}, first{.shape = {3, 2}};
  const auto name = [](const char* text) { return std::string(text); };
  return {
      {"sequence_gru", {sequences(6), first, {.shape = {2, 6}}, {.shape = {1, 6}}}, {}, 2, 1},
      {"sequence_gru",
       {sequences(6), missing, {.shape = {2, 6}}, missing},
       {{"is_reverse", true}, {"origin_mode", true}, {"gate_activation", name("tanh")}},
       2,
       1},
      {"sequence_lstm", {sequences(8), first, first, {.shape = {2, 8}}, {.shape = {1, 14}}}, {}, 3, 2},
      {"sequence_lstm",
       {sequences(8), missing, missing, {.shape = {2, 8}}, {.shape = {1, 8}}},
       {{"is_reverse", true}, {"use_peepholes", false}, {"candidate_activation", name("sigmoid")}},
       3,
       1},
  };
}

}  // namespace fleetrun::engine
