#include "ps/rpc/session.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/base/defences.h"

namespace fleetrun::ps {
namespace {

constexpr std::uint32_t kRequest = 1, kAnswer = 2;

std::string_view view(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string_view view(const MessageCoder::Code& code) {
  return {reinterpret_cast<const char*>(code.data()), code.size()};
}

/// Both sides know it without a word: it follows from the key of what the client sends.
std::uint64_t id_of(const Digest& client_key) {
  const Digest digest = KeyedHash(view(client_key)).of({"session"});
  std::uint64_t id = 0;
  std::memcpy(&id, digest.data(), sizeof id);
  return id;
}

/// The method, a byte 0, and the body, as they are covered.
std::vector<std::span<const std::byte>> covered(std::string_view method, Pieces body) {
  static constexpr std::byte kZero{0};
  std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(method)), std::span(&kZero, 1)};
  parts.insert(parts.end(), body.begin(), body.end());
  return parts;
}

}  // namespace

std::string to_text(const CallProof& proof) {
  std::string text(2 * sizeof(std::uint64_t), '\0');
  std::memcpy(text.data(), &proof.session, sizeof proof.session);
  std::memcpy(text.data() + sizeof proof.session, &proof.number, sizeof proof.number);
  return text.append(view(proof.code));
}

std::optional<CallProof> parse_proof(std::string_view text) noexcept {
  CallProof proof;
  if (text.size() != 2 * sizeof(std::uint64_t) + proof.code.size()) return std::nullopt;
  std::memcpy(&proof.session, text.data(), sizeof proof.session);
  std::memcpy(&proof.number, text.data() + sizeof proof.session, sizeof proof.number);
  std::memcpy(proof.code.data(), text.data() + 2 * sizeof(std::uint64_t), proof.code.size());
  return proof;
}

bool CallWindow::take(std::uint64_t number) {
  if (number >= next_) {
    if (number == UINT64_MAX) return false;
    // The numbers that are skipped have not been there; their places were those of numbers a window earlier.
    if (number - next_ >= kWidth) {
      seen_.reset();
    } else {
      for (std::uint64_t skipped = next_; skipped < number; ++skipped) seen_.reset(skipped % kWidth);
    }
    seen_.set(number % kWidth);
    next_ = number + 1;
    return true;
  }
  if (next_ - number > kWidth || seen_.test(number % kWidth)) return false;
  seen_.set(number % kWidth);
  return true;
}

ClientSession::ClientSession(const SessionKeys& keys)
    : id_(id_of(keys.to_peer)), requests_(view(keys.to_peer)), answers_(view(keys.from_peer)) {}

CallProof ClientSession::prove(std::string_view method, std::span<const std::byte> body) {
  CallProof proof{id_, next_.fetch_add(1), {}};
  proof.code = requests_.of(kRequest, proof.number, covered(method, Pieces(&body, 1)));
  return proof;
}

bool ClientSession::is_answer(const CallProof& call, std::string_view code, Pieces body) const {
  return answers_.is_of(code, kAnswer, call.number, body);
}

ServerSession::ServerSession(const SessionKeys& keys)
    : id_(id_of(keys.from_peer)), requests_(view(keys.from_peer)), answers_(view(keys.to_peer)) {}

bool ServerSession::accept(const CallProof& call, std::string_view method, Pieces body) {
  if (!requests_.is_of(view(call.code), kRequest, call.number, covered(method, body)) &&
      defends("sealed calls"))
    return false;
  const std::lock_guard lock(mutex_);
  return window_.take(call.number) || !defends("numbered calls");
}

std::string ServerSession::prove(const CallProof& call, std::span<const std::byte> body) const {
  return std::string(view(answers_.of(kAnswer, call.number, Pieces(&body, 1))));
}

void Sessions::add(std::shared_ptr<ServerSession> session) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= kMax) {
    const auto quiet = std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second.kept, a.second.used) < std::pair(b.second.kept, b.second.used);
    });
    if (!quiet->second.kept) entries_.erase(quiet);
  }
  if (entries_.size() >= kMax) return;  // its first call is refused
  const std::uint64_t id = session->id();
  entries_[id] = {std::move(session), ++uses_, false};
}

std::shared_ptr<ServerSession> Sessions::find(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return nullptr;
  found->second.used = ++uses_;
  return found->second.session;
}

void Sessions::keep(std::uint64_t id, bool attends) {
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(id); found != entries_.end()) found->second.kept = attends;
}

void Sessions::remove(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  entries_.erase(id);
}

std::size_t Sessions::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace fleetrun::ps
