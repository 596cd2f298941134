// Saving and loading: every server does its part on its own host, whole or not at all. A save is one moment
// of all servers: they stop letting changes in, agree on those that any of them has, let these in, and begin
// their cuts; then training goes on, beside the writing.
#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "ps/client/channel_client_state.h"
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

std::uint64_t ChannelClient::begin_save(const std::string& directory) {
  const Header head = header(Method::save_begin);
  std::uint64_t save = 0;
  // One server after the other: of trainers that save at once, the others wait for the first one there.
  for (std::uint32_t s = 0; s < servers(); ++s) {
    PendingCalls pending;
    pending.on_answer(
        [&](std::uint32_t, Reader answer) { save = std::max(save, answer.value<std::uint64_t>()); });
    pending.start(*channels_[s], s, head, directory_request(head, directory));
    pending.wait();
  }
  return save;
}

void ChannelClient::settle() {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> highest;
  ask_all(
      header(Method::save_freeze),
      [&](std::uint32_t) { return wire::draft(header(Method::save_freeze), 0).message; },
      [&](std::uint32_t, Reader answer) {
        for (auto left = answer.value<std::uint32_t>(); left > 0; --left) {
          const auto progress = answer.value<wire::Progress>();
          std::uint64_t& number = highest[{progress.trainer, progress.incarnation}];
          number = std::max(number, progress.number);
        }
      });
  const Header head = header(Method::save_settle);
  ask_all(head, [&](std::uint32_t) {
    wire::Draft draft = wire::draft(head, sizeof(std::uint32_t) + highest.size() * sizeof(wire::Progress));
    draft.writer.value(static_cast<std::uint32_t>(highest.size()));
    for (const auto& [client, number] : highest) {
      draft.writer.value(wire::Progress{client.first, 0, client.second, number});
    }
    return std::move(draft.message);
  });
}

ChannelClient::SavedParts ChannelClient::save_parts(const std::string& directory, std::uint64_t save,
                                                    SaveMode mode, const Changes& changes, bool replaces) {
  SavedParts parts(servers());
  const Header head = header(Method::save_part);
  ask_all(
      head,
      [&](std::uint32_t) {
        const std::size_t more = sizeof save + sizeof mode + sizeof(std::uint32_t) + sizeof changes;
        return directory_request(head, directory, more, [&](Writer& writer) {
          writer.value(save);
          writer.value(mode);
          writer.value(std::uint32_t{replaces ? 1u : 0u});
          writer.value(changes);
        });
      },
      [&](std::uint32_t server, Reader answer) {
        parts[server].resize(answer.value<std::uint32_t>());
        for (SavedPiece& piece : parts[server]) {
          piece.bytes = answer.value<std::uint64_t>();
          piece.digest = answer.value<std::uint64_t>();
        }
      });
  return parts;
}

void ChannelClient::commit_save(const SavedParts& parts) {
  const Header head = header(Method::save_commit);
  std::size_t size = sizeof(std::uint32_t);
  for (const auto& pieces : parts) size += sizeof(std::uint32_t) + pieces.size() * 2 * sizeof(std::uint64_t);
  ask_all(head, [&](std::uint32_t) {
    wire::Draft draft = wire::draft(head, size);
    draft.writer.value(static_cast<std::uint32_t>(parts.size()));
    for (const auto& pieces : parts) {
      draft.writer.value(static_cast<std::uint32_t>(pieces.size()));
      for (const SavedPiece& piece : pieces) {
        draft.writer.value(piece.bytes);
        draft.writer.value(piece.digest);
      }
    }
    return std::move(draft.message);
  });
}

void ChannelClient::end_save(bool committed) {
  const Header head = header(Method::save_end);
  ask_all(head, [&](std::uint32_t) {
    wire::Draft draft = wire::draft(head, sizeof(std::uint32_t));
    draft.writer.value(std::uint32_t{committed ? 1u : 0u});
    return std::move(draft.message);
  });
}

// Servers forget, with their process or the client's connection, what was begun but has no end: it is begun
// once more with all of them, as often as that happens: how often a server may die is said elsewhere, and a
// call that fails while all connections last has another reason.
void ChannelClient::complete(const std::function<void()>& work) {
  const auto connections = [this] {
    std::uint64_t all = 0;
    for (const auto& channel : channels_) all += channel->connections();
    return all;
  };
  for (;;) {
    const std::uint64_t before = connections();
    try {
      return work();
    } catch (const Error&) {
      if (connections() == before) throw;
    }
  }
}

ChannelClient::SavedParts ChannelClient::write_save(const std::string& directory, SaveMode mode,
                                                    const Changes& changes, bool replaces) {
  const std::uint64_t save = begin_save(directory);
  settle();
  return save_parts(directory, save, mode, changes, replaces);
}

// What has begun is given up where it fails.
void ChannelClient::save_with(const std::string& directory, const std::function<void()>& work) {
  try {
    work();
  } catch (Error& error) {
    try {
      end_save(false);
    } catch (const Error&) {
      // The first error says what went wrong; leftover pieces that no manifest names are never loaded.
    }
    error.while_doing("saving to " + directory);
    throw;
  }
}

void ChannelClient::save(const std::string& directory, SaveMode mode) {
  if (before_.is_under_way()) return;
  complete([&] {
    save_with(directory, [&] { commit_save(write_save(directory, mode, {})); });
    end_save(true);
  });
}

// Its directory takes one export. Where a server may have committed this one, it is the one to be replaced.
std::uint64_t ChannelClient::export_rows(const std::string& directory, std::uint64_t since) {
  if (before_.is_under_way()) return 0;
  std::uint64_t number = since;
  bool may_be_there = false;
  complete([&] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    // Unlike that of any export of servers before these: who follows those is told so.
    const auto micros =
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
    number = std::max(micros, number + 1);
    const SaveMode mode = since == 0 ? SaveMode::all : SaveMode::changes;
    save_with(directory, [&] {
      const SavedParts parts = write_save(directory, mode, {since, number}, may_be_there);
      may_be_there = true;
      commit_save(parts);
    });
    end_save(true);
  });
  return number;
}

void ChannelClient::save_for_paddle(const std::string& directory, SaveMode mode) {
  if (servers() != 1) {
    throw Error(ErrorKind::config,
                "Paddle's checkpoints put a key's rows by its number; " + std::to_string(servers()) +
                    " servers hold them by its hash",
                "save as usual, load that in a process without servers, and save from there");
  }
  if (!before_.is_under_way()) complete([&] { save_text(directory, mode); });
}

void ChannelClient::save_text(const std::string& directory, SaveMode mode) {
  save_with(directory, [&] {
    begin_save(directory);
    settle();
    const Header head = header(Method::save_text);
    ask_all(head, [&](std::uint32_t) {
      return directory_request(head, directory, sizeof mode, [&](Writer& writer) { writer.value(mode); });
    });
  });
  end_save(true);
}

std::vector<FoundSave> ChannelClient::prepare_load(const std::string& directory, std::uint64_t wanted,
                                                   std::string& fallen_back) {
  const Header head = header(Method::load_prepare);
  std::vector<FoundSave> saves(servers());
  ask_all(
      head,
      [&](std::uint32_t) {
        return directory_request(head, directory, sizeof wanted,
                                 [&](Writer& writer) { writer.value(wanted); });
      },
      [&](std::uint32_t server, Reader answer) {
        saves[server].save = answer.value<std::uint64_t>();
        saves[server].digest = answer.value<std::uint64_t>();
        std::string reason = wire::read_text(answer);
        if (fallen_back.empty()) fallen_back = std::move(reason);
      });
  return saves;
}

std::string ChannelClient::load(const std::string& directory) {
  std::string fallen_back;
  if (!before_.is_under_way()) complete([&] { fallen_back = load_all(directory); });
  return fallen_back;
}

std::string ChannelClient::load_all(const std::string& directory) {
  std::string fallen_back;
  try {
    std::vector<FoundSave> saves = prepare_load(directory, 0, fallen_back);
    const auto [oldest, newest] = std::minmax_element(saves.begin(), saves.end());
    if (oldest->save != newest->save) {
      // One server has the newest save damaged, or never got to commit it: all take the one before it.
      if (fallen_back.empty()) {
        fallen_back = channels_[static_cast<std::size_t>(oldest - saves.begin())]->name() + " has no save " +
                      std::to_string(newest->save) + " in " + directory;
      }
      saves = prepare_load(directory, oldest->save, fallen_back);
    }
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
  return fallen_back;
}

}  // namespace fleetrun::ps
