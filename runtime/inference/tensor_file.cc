#include "runtime/inference/tensor_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/text.h"

namespace fleetrun::inference {
namespace {

static_assert(std::endian::native == std::endian::little, "the file's values are little-endian");

using engine::DataType;
using nlohmann::json;

constexpr std::array<std::pair<std::string_view, DataType>, 5> kTypes = {{{"F32", DataType::float32},
                                                                          {"F64", DataType::float64},
                                                                          {"I32", DataType::int32},
                                                                          {"I64", DataType::int64},
                                                                          {"BOOL", DataType::boolean}}};

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)), in_(path_, std::ios::binary | std::ios::ate) {
    if (!in_)
      throw Error(ErrorKind::data, path_ + " cannot be read", "save_inference_model writes such a file");
    bytes_ = static_cast<std::uint64_t>(in_.tellg());
  }

  std::map<std::string, engine::Tensor> read() {
    const json header = read_header();
    std::map<std::string, engine::Tensor> tensors;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      try {
        tensors.emplace(name, read_tensor(name, entry, places));
      } catch (const json::exception& error) {
        fail("the entry of '" + printable(name) + "' is not as it should be: " + error.what());
      }
    }
    check_places(places);
    return tensors;
  }

 private:
  json read_header() {
    std::uint64_t length = 0;
    if (bytes_ < sizeof length)
      fail("it has " + std::to_string(bytes_) + " bytes, less than its first number");
    read_at(0, &length, sizeof length);
    if (length > bytes_ - sizeof length)
      fail("its header should have " + std::to_string(length) + " bytes, the file has " +
           std::to_string(bytes_));
    begin_ = sizeof length + length;
    std::string text(length, '\0');
    read_at(sizeof length, text.data(), length);
    json header = read_json<json>(text);
    if (!header.is_object()) fail("its header is not a JSON object");
    return header;
  }

  engine::Tensor read_tensor(const std::string& name, const json& entry,
                             std::vector<std::pair<std::uint64_t, std::uint64_t>>& places) {
    const std::string type = entry.at("dtype");
    const auto known =
        std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& one) { return one.first == type; });
    if (known == kTypes.end()) fail("'" + printable(name) + "' has values of type " + printable(type));
    const auto shape = entry.at("shape").get<std::vector<std::uint64_t>>();
    const auto place = entry.at("data_offsets").get<std::array<std::uint64_t, 2>>();
    const std::uint64_t room = bytes_ - begin_;
    if (place[0] > place[1] || place[1] > room)
      fail("'" + printable(name) + "' should be at " + std::to_string(place[0]) + " to " +
           std::to_string(place[1]) + " of " + std::to_string(room) + " bytes");
    std::uint64_t bytes = engine::size_of(known->second);
    for (const std::uint64_t size : shape) {
      if (size != 0 && bytes > room / size) fail("'" + printable(name) + "' is larger than the file");
      bytes *= size;
    }
    if (bytes != place[1] - place[0])
      fail("'" + printable(name) + "' needs " + std::to_string(bytes) + " bytes and has " +
           std::to_string(place[1] - place[0]));
    engine::Tensor tensor(known->second, engine::Shape(shape.begin(), shape.end()));
    read_at(begin_ + place[0], tensor.data(), bytes);
    if (known->second == DataType::boolean) check_booleans(name, tensor);
    if (bytes > 0) places.emplace_back(place[0], place[1]);
    return tensor;
  }

  void check_booleans(const std::string& name, const engine::Tensor& tensor) const {
    const auto* byte = static_cast<const unsigned char*>(tensor.data());
    const bool is_good =
        std::all_of(byte, byte + tensor.bytes(), [](unsigned char value) { return value <= 1; });
    if (!is_good) fail("'" + printable(name) + "' has booleans that are neither 0 nor 1");
  }

  void check_places(std::vector<std::pair<std::uint64_t, std::uint64_t>>& places) const {
    std::sort(places.begin(), places.end());
    for (std::size_t i = 1; i < places.size(); ++i)
      if (places[i].first < places[i - 1].second) fail("two of its tensors are at one place");
  }

  void read_at(std::uint64_t offset, void* to, std::uint64_t bytes) {
    if (bytes == 0) return;
    in_.seekg(static_cast<std::streamoff>(offset));
    in_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
    if (!in_) fail("it cannot be read to its end");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::data, path_ + " is damaged: " + what, "copy or save the model again");
  }

  std::string path_;
  std::ifstream in_;
  std::uint64_t bytes_ = 0;
  std::uint64_t begin_ = 0;
};

}  // namespace

std::map<std::string, engine::Tensor> read_tensors(const std::string& path) {
  return Reader(path).read();
}

}  // namespace fleetrun::inference
