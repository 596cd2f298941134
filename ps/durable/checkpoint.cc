//   owner  "FLPSOWN1" | run text | server text | crc32c u32 of all before
#include "ps/durable/checkpoint.h"

#include <fcntl.h>
#include <sys/file.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ps/base/block_file.h"
#include "ps/base/bytes.h"
#include "ps/base/wire.h"
#include "ps/durable/write_log.h"
#include "ps/saving/manifest.h"
#include "runtime/base/crc32c.h"
#include "runtime/base/error.h"
#include "runtime/base/own_file.h"

namespace fleetrun::ps {
namespace {

constexpr std::array<char, 8> kMagic = {'F', 'L', 'P', 'S', 'O', 'W', 'N', '1'};
constexpr const char* kStartAnew =
    "load the tables from a save, and start with an empty checkpoint directory";

std::string owner_path(const std::string& directory) {
  return directory + "/owner";
}

}  // namespace

std::vector<std::byte> to_bytes(const KeptState& state) {
  Bytes out;
  out.value(state.first_segment);
  out.value(state.server);
  out.value(static_cast<std::uint32_t>(state.histories.size()));
  for (const auto& [client, history] : state.histories) {
    out.value(client.trainer);
    out.value(client.incarnation);
    out.value(history.prefix());
    const std::vector<std::uint64_t> beyond = history.beyond();
    out.value(std::uint64_t{beyond.size()});
    out.array(std::span<const std::uint64_t>(beyond));
  }
  out.array(std::span<const std::byte>(state.barrier_service));
  return {out.bytes().begin(), out.bytes().end()};
}

KeptState parse_kept_state(const std::vector<std::byte>& bytes) {
  Reader in{std::span<const std::byte>(bytes)};
  KeptState out;
  out.first_segment = in.value<std::uint64_t>();
  out.server = in.value<std::uint64_t>();
  const auto clients = in.value<std::uint32_t>();
  for (std::uint32_t i = 0; i < clients; ++i) {
    ClientId client;
    client.trainer = in.value<std::uint32_t>();
    client.incarnation = in.value<std::uint64_t>();
    const auto prefix = in.value<std::uint64_t>();
    const auto count = in.value<std::uint64_t>();
    Message copy;
    const auto beyond = in.array<std::uint64_t>(count, copy);
    out.histories.emplace(client, PushHistory::restore(prefix, {beyond.begin(), beyond.end()}));
  }
  Message copy;
  const auto barrier_service = in.array<std::byte>(in.remaining(), copy);
  out.barrier_service.assign(barrier_service.begin(), barrier_service.end());
  return out;
}

std::string directory_of_server(const std::string& directory, std::uint32_t rank) {
  std::array<char, 32> name;
  std::snprintf(name.data(), name.size(), "/server-%05" PRIu32, rank);
  return directory + name.data();
}

UniqueFd lock_directory(const std::string& directory) {
  make_own_directory(directory);
  const std::string path = directory + "/lock";
  UniqueFd file(check_errno(open_own(path, O_RDWR | O_CREAT, Readers::owner), "open", path));
  if (::flock(file.value(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) check_errno(-1, "flock", path);
    throw Error(ErrorKind::config, directory + " is in use by another server",
                "give each job a checkpoint directory of its own");
  }
  return file;
}

void write_owner(const std::string& directory, const Owner& owner) {
  Bytes out;
  out.value(kMagic);
  out.text(owner.run);
  out.text(owner.server);
  out.value(crc32c(out.bytes()));
  const std::string text(reinterpret_cast<const char*>(out.bytes().data()), out.bytes().size());
  write_file_atomically(owner_path(directory), owner_path(directory) + ".tmp", text);
}

std::optional<Owner> read_owner(const std::string& directory) {
  const std::string path = owner_path(directory);
  std::ifstream file(path, std::ios::binary);
  if (!file && !std::filesystem::exists(path)) return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto bytes = std::as_bytes(std::span(text));
  std::uint32_t checksum = 0;
  const bool is_whole = bytes.size() >= sizeof checksum + sizeof kMagic;
  if (is_whole) std::memcpy(&checksum, bytes.data() + bytes.size() - sizeof checksum, sizeof checksum);
  const auto covered = bytes.first(is_whole ? bytes.size() - sizeof checksum : 0);
  if (!is_whole || crc32c(covered) != checksum ||
      std::memcmp(covered.data(), kMagic.data(), sizeof kMagic) != 0)
    throw Error(ErrorKind::data, path + " is damaged", kStartAnew);
  Reader in(covered.subspan(sizeof kMagic));
  Owner owner;
  owner.run = wire::read_text(in);
  owner.server = wire::read_text(in);
  return owner;
}

void clear_directory(const std::string& directory) {
  std::error_code ignored;
  // First of all what makes the rest count.
  for (const std::string& path :
       {manifest_path(directory), previous_manifest_path(directory), owner_path(directory)})
    std::filesystem::remove(path, ignored);
  remove_other_pieces(directory);
  remove_log_before(directory, UINT64_MAX);
}

}  // namespace fleetrun::ps
