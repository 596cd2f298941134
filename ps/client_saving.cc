// Saving and loading: every server does its part on its own host, whole or not at all.
#include <algorithm>

#include "ps/channel_client_state.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {

using wire::Header;
using wire::Method;

Message ChannelClient::directory_request(const Header& head, const std::string& directory, std::size_t more,
                                         const std::function<void(Writer&)>& write_more) const {
  wire::Draft draft = wire::draft(head, wire::text_size(directory) + more);
  wire::write_text(draft.writer, directory);
  if (write_more) write_more(draft.writer);
  return std::move(draft.message);
}

std::vector<std::pair<std::uint64_t, std::uint32_t>> ChannelClient::save_parts(const std::string& directory,
                                                                               std::uint64_t save) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> parts(servers());
  const Header head = header(Method::save_part);
  ask_all(
      head,
      [&](std::uint32_t) {
        return directory_request(head, directory, sizeof save, [&](Writer& writer) { writer.value(save); });
      },
      [&](std::uint32_t server, Reader answer) {
        parts[server].first = answer.value<std::uint64_t>();
        parts[server].second = answer.value<std::uint32_t>();
      });
  return parts;
}

std::uint64_t ChannelClient::next_save(const std::string& directory) {
  const Header head = header(Method::save_next);
  std::uint64_t save = 0;
  ask_all(
      head, [&](std::uint32_t) { return directory_request(head, directory); },
      [&](std::uint32_t, Reader answer) { save = std::max(save, answer.value<std::uint64_t>()); });
  return save;
}

void ChannelClient::save(const std::string& directory) {
  const std::uint64_t save = next_save(directory);
  const Header clean = header(Method::save_clean);
  const auto make_clean = [&](std::uint32_t) { return directory_request(clean, directory); };
  try {
    const auto parts = save_parts(directory, save);
    const Header commit = header(Method::save_commit);
    constexpr std::size_t kPartBytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);
    const auto write_parts = [&](Writer& writer) {
      writer.value(save);
      writer.value(static_cast<std::uint32_t>(parts.size()));
      for (const auto& [bytes, checksum] : parts) {
        writer.value(bytes);
        writer.value(checksum);
      }
    };
    ask_all(commit, [&](std::uint32_t) {
      return directory_request(commit, directory,
                               sizeof save + sizeof(std::uint32_t) + parts.size() * kPartBytes, write_parts);
    });
  } catch (Error& error) {
    try {
      ask_all(clean, make_clean);
    } catch (const Error&) {
      // The first error says what went wrong; leftover parts that no manifest names are never loaded.
    }
    error.while_doing("saving to " + directory);
    throw;
  }
  ask_all(clean, make_clean);
}

void ChannelClient::load(const std::string& directory) {
  try {
    const Header prepare = header(Method::load_prepare);
    std::vector<std::uint64_t> saves(servers());
    ask_all(
        prepare, [&](std::uint32_t) { return directory_request(prepare, directory); },
        [&](std::uint32_t server, Reader answer) { saves[server] = answer.value<std::uint64_t>(); });
    for (std::uint32_t s = 1; s < servers(); ++s) {
      if (saves[s] == saves[0]) continue;
      throw Error(
          ErrorKind::data,
          channels_[0]->name() + " and " + channels_[s]->name() + " find different saves in " + directory,
          "copy one save to all hosts, or use a shared directory");
    }
  } catch (Error& error) {
    try {
      ask_all(header(Method::load_abort));
    } catch (const Error&) {
      // The first error says what went wrong.
    }
    error.while_doing("loading from " + directory);
    throw;
  }
  ask_all(header(Method::load_commit));
}

}  // namespace fleetrun::ps
