#include "ps/sync/sum_history.h"

#include <string>
#include <utility>

#include "ps/base/wire.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

constexpr std::size_t kBesideValues = 512;  // what a sum takes apart from its values, about

std::size_t size_of(const SumHistory::Sum& sum) {
  const Message* values = std::get_if<Message>(sum.outcome.get());
  return kBesideValues + (values == nullptr ? 0 : values->size());
}

}  // namespace

void SumHistory::add(Sum sum) {
  bytes_ += size_of(sum);
  sums_.push_back(std::move(sum));
  while (bytes_ > kMax) {
    bytes_ -= size_of(sums_.front());
    sums_.pop_front();
  }
}

const SumHistory::Sum* SumHistory::find(std::uint32_t trainer, std::uint64_t number) const {
  for (const Sum& sum : sums_) {
    const auto part = sum.parts.find(trainer);
    if (part != sum.parts.end() && part->second.number == number) return &sum;
  }
  return nullptr;
}

void SumHistory::forget(std::uint32_t trainer) {
  for (Sum& sum : sums_) sum.parts.erase(trainer);
}

void SumHistory::write(Bytes& out) const {
  out.value(static_cast<std::uint32_t>(sums_.size()));
  for (const Sum& sum : sums_) {
    write_outcome(out, *sum.outcome);
    out.value(static_cast<std::uint32_t>(sum.parts.size()));
    for (const auto& [trainer, part] : sum.parts) {
      out.value(trainer);
      out.value(part.number);
      out.value(part.values);
    }
  }
}

void SumHistory::read(Reader& in) {
  sums_.clear();
  bytes_ = 0;
  const auto sums = in.value<std::uint32_t>();
  for (std::uint32_t i = 0; i < sums; ++i) {
    Sum sum{std::make_shared<Outcome>(read_outcome(in)), {}};
    const auto parts = in.value<std::uint32_t>();
    for (std::uint32_t k = 0; k < parts; ++k) {
      const auto trainer = in.value<std::uint32_t>();
      const auto number = in.value<std::uint64_t>();
      sum.parts[trainer] = {number, in.value<std::uint64_t>()};
    }
    add(std::move(sum));
  }
}

void write_outcome(Bytes& out, const Outcome& outcome) {
  const Error* error = std::get_if<Error>(&outcome);
  out.value(std::uint32_t{error != nullptr ? 1u : 0u});
  if (error != nullptr) {
    out.value(static_cast<std::uint32_t>(error->kind()));
    out.text(error->what());
    out.text(error->hint());
    return;
  }
  const auto bytes = std::get<Message>(outcome).bytes();
  out.value(std::uint64_t{bytes.size()});
  out.array(bytes);
}

Outcome read_outcome(Reader& in) {
  if (in.value<std::uint32_t>() != 0) {
    const auto kind = static_cast<ErrorKind>(in.value<std::uint32_t>());
    const std::string what = wire::read_text(in);
    return Error(kind, what, wire::read_text(in));
  }
  const auto size = in.value<std::uint64_t>();
  Message copy;
  const auto bytes = in.array<std::byte>(size, copy);
  Message out(bytes.size());
  Writer(out).array(bytes);
  return out;
}

}  // namespace fleetrun::ps
