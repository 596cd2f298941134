#include "ps/base/encoding.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "ps/client/error_feedback.h"
#include "runtime/base/environ.h"
#include "runtime/base/error.h"

using namespace fleetrun::ps;

namespace {

std::vector<float> there_and_back(Encoding encoding, const std::vector<float>& values, std::size_t width) {
  std::vector<std::uint64_t> bytes(encoded_bytes(encoding, values.size(), width) / 8 + 1);
  auto* out = reinterpret_cast<std::byte*>(bytes.data());
  encode(encoding, values, width, out);
  std::vector<float> back(values.size());
  decode(encoding, out, width, back);
  return back;
}

std::vector<float> some_values(std::size_t count, float scale) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> out(count);
  for (float& value : out) value = normal(random);
  return out;
}

}  // namespace

TEST_CASE("encoding: sizes are multiples of 8 bytes, those of float32 as they are") {
  CHECK(encoded_bytes(Encoding::float32, 3, 3) == 12);
  CHECK(encoded_bytes(Encoding::float16, 3, 3) == 8);
  CHECK(encoded_bytes(Encoding::bfloat16, 5, 5) == 16);
  CHECK(encoded_bytes(Encoding::int8, 20, 10) == 32);
  CHECK(encoded_bytes(Encoding::int8, 257, 256) == 272);
  CHECK(encoded_bytes(Encoding::int8, 0, 10) == 0);
}

TEST_CASE("encoding: values that are exact come back") {
  const std::vector<float> exact{
      0.0f, -0.0f, 1.0f, -2.0f, 0.5f, 65504.0f, 0.00006103515625f, 5.9604644775390625e-08f, -0.15625f};
  CHECK(there_and_back(Encoding::float16, exact, 3) == exact);
  const std::vector<float> short_ones{0.0f, 1.0f, -2.0f, 0.5f, 3.0e38f * 0.0f, -0.15625f};
  CHECK(there_and_back(Encoding::bfloat16, short_ones, 3) == short_ones);
  CHECK(there_and_back(Encoding::int8, {127, -127, 1, 0, 64}, 5) == std::vector<float>{127, -127, 1, 0, 64});
  CHECK(there_and_back(Encoding::int8, {0, 0}, 2) == std::vector<float>{0, 0});
}

TEST_CASE("encoding: every half there is comes back from the float that it stands for") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7c00) == 0x7c00) continue;  // infinite, or not a number
    const std::uint64_t word = bits;
    float value = 0;
    decode(Encoding::float16, reinterpret_cast<const std::byte*>(&word), 1, {&value, 1});
    std::uint64_t again = 0;
    encode(Encoding::float16, {&value, 1}, 1, reinterpret_cast<std::byte*>(&again));
    REQUIRE((again & 0xffff) == bits);
  }
}

TEST_CASE("encoding: what is lost is bounded") {
  for (const float scale : {1e-3f, 1.0f, 100.0f}) {
    const auto values = some_values(1000, scale);
    const auto half = there_and_back(Encoding::float16, values, 10);
    const auto brain = there_and_back(Encoding::bfloat16, values, 10);
    const auto bytes = there_and_back(Encoding::int8, values, 10);
    for (std::size_t row = 0; row < 100; ++row) {
      float largest = 0;
      for (std::size_t c = 0; c < 10; ++c) largest = std::max(largest, std::fabs(values[row * 10 + c]));
      for (std::size_t i = row * 10; i < row * 10 + 10; ++i) {
        CHECK(std::fabs(half[i] - values[i]) <= std::fabs(values[i]) / 2048 + 3e-8f);
        CHECK(std::fabs(brain[i] - values[i]) <= std::fabs(values[i]) / 256);
        CHECK(std::fabs(bytes[i] - values[i]) <= largest / 127 * 0.501f);
      }
    }
  }
}

TEST_CASE("encoding: the largest and the tiniest stay finite") {
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr float kTiniest = std::numeric_limits<float>::denorm_min();
  for (const Encoding encoding : {Encoding::float16, Encoding::bfloat16, Encoding::int8}) {
    for (const float value :
         there_and_back(encoding, {kLargest, -kLargest, kTiniest, -kTiniest, kTiniest, kTiniest}, 2))
      CHECK(std::isfinite(value));
  }
}

TEST_CASE("encoding: names, and their variables") {
  CHECK(encoding_of("bf16") == Encoding::bfloat16);
  CHECK_THROWS_AS(encoding_of("fp8"), fleetrun::Error);
  const Encodings none = encodings_of(fleetrun::Environ{});
  CHECK(none.gradients == Encoding::float32);
  CHECK(encodings_of(fleetrun::Environ{{"FLEETRUN_PS_GRADIENTS", "int8"}}).gradients == Encoding::int8);
}

TEST_CASE("error feedback: over many steps the server receives the sum of the gradients") {
  constexpr std::size_t kWidth = 10, kSteps = 400;
  const std::vector<std::uint64_t> keys{7, 1000, 3};
  for (const Encoding encoding : {Encoding::float16, Encoding::bfloat16, Encoding::int8}) {
    ErrorFeedback feedback;
    std::vector<double> sent(30), arrived(30), without(30);
    std::mt19937 random(5);
    // Small beside a few large ones, and always to one side: where rounding alone goes wrong most.
    std::normal_distribution<float> normal(1e-4f, 1e-4f);
    for (std::size_t step = 0; step < kSteps; ++step) {
      std::vector<float> gradients(30);
      for (float& value : gradients) value = normal(random);
      for (std::size_t row = 0; row < 3; ++row) gradients[row * kWidth] = 1.0f;
      for (std::size_t i = 0; i < 30; ++i) sent[i] += gradients[i];
      const auto rounded = there_and_back(encoding, gradients, kWidth);
      for (std::size_t i = 0; i < 30; ++i) without[i] += rounded[i];
      std::vector<std::uint64_t> bytes(32);
      auto* out = reinterpret_cast<std::byte*>(bytes.data());
      feedback.encode_rows(encoding, 0, keys, gradients, out);
      std::vector<float> back(30);
      decode(encoding, out, kWidth, back);
      for (std::size_t i = 0; i < 30; ++i) arrived[i] += back[i];
    }
    double error = 0, error_without = 0;
    for (std::size_t i = 0; i < 30; ++i) {
      error = std::max(error, std::fabs(arrived[i] - sent[i]));
      error_without = std::max(error_without, std::fabs(without[i] - sent[i]));
    }
    // One step's rounding at most is under way; without feedback the steps' add up.
    CHECK(error < 0.01);
    if (encoding == Encoding::int8) CHECK(error_without > 0.03);
    CHECK(feedback.displaced() == 0);
  }
}

TEST_CASE("error feedback: dense blocks, each server's own") {
  ErrorFeedback feedback;
  double arrived = 0;
  for (int step = 0; step < 100; ++step) {
    std::vector<float> gradients(300, 0.001f);
    gradients[0] = 1.0f;
    std::vector<std::uint64_t> bytes(60);
    auto* out = reinterpret_cast<std::byte*>(bytes.data());
    feedback.encode_dense(Encoding::int8, 1, 0, gradients, out);
    std::vector<float> back(300);
    decode(Encoding::int8, out, kDenseRow, back);
    arrived += back[100];
  }
  CHECK(arrived == doctest::Approx(0.1).epsilon(0.05));
}

TEST_CASE("error feedback: memory is bounded, and what it costs is counted") {
  ErrorFeedback feedback(1000);
  std::vector<std::uint64_t> keys(100), bytes(200);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  std::vector<float> gradients(400, 0.3f);
  feedback.encode_rows(Encoding::bfloat16, 0, keys, gradients, reinterpret_cast<std::byte*>(bytes.data()));
  CHECK(feedback.displaced() >= 100 - 32);
}
