#include "ps/saving/paddle_checkpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "ps/base/key_partition.h"
#include "ps/saving/gzip_text.h"
#include "ps/saving/paddle_row.h"
#include "ps/saving/parallel.h"
#include "runtime/base/error.h"

namespace fleetrun::ps {
namespace {

namespace fs = std::filesystem;

struct Folder {
  std::vector<std::string> sparse;  // paths, in the order of their names
  std::vector<std::string> dense;
};

bool are_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Folder folder_of(const fs::path& path) {
  Folder out;
  for (const auto& entry : fs::directory_iterator(path)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    if (!name.starts_with("part-") || !entry.is_regular_file()) continue;
    const std::string numbers = name.substr(5);
    if (are_digits(numbers)) out.dense.push_back(entry.path().string());
    if (numbers.size() == 9 && numbers[3] == '-' && are_digits(numbers.substr(0, 3)) &&
        are_digits(numbers.substr(4))) {
      out.sparse.push_back(entry.path().string());
    }
  }
  std::sort(out.sparse.begin(), out.sparse.end());
  std::sort(out.dense.begin(), out.dense.end());
  return out;
}

std::vector<Folder> folders_of(const std::string& directory) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.size() == 3 && are_digits(name) && entry.is_directory(ignored)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Folder> out;
  for (const fs::path& path : paths) out.push_back(folder_of(path));
  return out;
}

// Adds the file and the line to what is wrong.
void read_checked(const std::string& path, const std::function<void(std::string_view)>& take) {
  read_lines(path, [&](std::string_view line, std::size_t number) {
    if (line.empty()) return;
    try {
      take(line);
    } catch (const Error& error) {
      throw Error(error.kind(), path + ": line " + std::to_string(number) + ": " + error.what(),
                  error.hint());
    }
  });
}

void load_sparse(const std::vector<std::string>& paths, ServerPlace place, TableSet& set,
                 SparseTable& table) {
  const PaddleRows rows(table.config());
  work_in_parallel(paths.size(), [&](std::size_t i) {
    static_cast<void>(set.stay());  // makes room where memory has a budget
    PaddleRows::Row row;
    read_checked(paths[i], [&](std::string_view line) {
      rows.parse(line, row);
      if (server_of(row.key, place.servers) == place.rank) table.insert(row.key, row.floats);
    });
  });
}

std::vector<float> numbers_in(std::string_view line) {
  std::vector<float> out;
  while (!line.empty()) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), out.emplace_back());
    if (error != std::errc())
      throw Error(ErrorKind::data, "'" + std::string(line.substr(0, 60)) + "' is not a number");
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    const std::size_t next = line.find_first_not_of(" \r");
    line.remove_prefix(next == std::string_view::npos ? line.size() : next);
  }
  return out;
}

// The values of all dense parameters, each with its state.
std::vector<std::vector<float>> read_dense(const std::vector<Folder>& folders) {
  std::vector<std::vector<float>> out;
  for (const Folder& folder : folders) {
    for (const std::string& path : folder.dense) {
      read_checked(path, [&](std::string_view line) { out.push_back(numbers_in(line)); });
    }
  }
  return out;
}

// Numbers between a value and its state that mean nothing.
std::size_t unused_of(const TableConfig& config) noexcept {
  return config.rule.kind == UpdateRule::Kind::adam_d2sum ? 1 : 0;
}

void load_dense(std::span<const std::vector<float>> values, const TableConfig& config, ServerPlace place,
                DenseTable& table) {
  const Block mine = dense_block(config, place.servers, place.rank);
  DenseTable::Contents contents = table.contents();
  contents.has_values = true;
  const std::size_t kinds = table.state_floats_per_value();
  const std::size_t skipped = unused_of(config);
  for (std::uint64_t i = 0; i < mine.size(); ++i) {
    const std::vector<float>& numbers = values[mine.begin + i];
    contents.values[i] = numbers.at(0);
    if (numbers.size() == 1) continue;  // saved without state: it starts anew
    if (numbers.size() != 1 + skipped + kinds) {
      throw Error(ErrorKind::config,
                  "dense values have " + std::to_string(numbers.size() - 1) +
                      " floats of optimizer state each; those of table '" + config.name + "' have " +
                      std::to_string(kinds),
                  "load it with the optimizer that it was saved with");
    }
    for (std::size_t kind = 0; kind < kinds; ++kind)
      contents.state[kind * mine.size() + i] = numbers[1 + skipped + kind];
  }
  table.restore(std::move(contents));
}

std::string table_directory(const std::string& directory, std::size_t number) {
  std::array<char, 16> name;
  std::snprintf(name.data(), name.size(), "/%03zu", number);
  const std::string path = directory + name.data();
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw Error(ErrorKind::host, "cannot make the directory " + path + ": " + error.message());
  return path;
}

void save_sparse(const std::string& directory, const TableConfig& config, const TableCut& cut,
                 std::uint32_t shards) {
  const PaddleRows rows(config);
  std::vector<std::string> texts(shards);
  TableCut::Scratch scratch;
  for (std::size_t shard = 0; shard < SparseTable::kShards; ++shard) {
    cut.rows(config.id, shard, scratch, [&](std::uint64_t key, std::span<const float> row) {
      rows.append_line(key, row.data(), texts[key % shards]);
    });
  }
  work_in_parallel(shards, [&](std::size_t i) {
    std::array<char, 32> name;
    std::snprintf(name.data(), name.size(), "/part-000-%05zu.gz", i);
    write_gzip(directory + name.data(), texts[i]);
  });
}

void append_dense(const TableConfig& config, const DenseTable::Contents& contents, std::string& out) {
  const std::string_view unused = unused_of(config) != 0 ? " 0" : "";
  const std::size_t count = contents.values.size();
  std::array<char, 64> number;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t at = i; at < count + contents.state.size(); at += count) {
      const float value = at < count ? contents.values[at] : contents.state[at - count];
      out.append(number.data(), std::to_chars(number.data(), number.data() + number.size(), value).ptr);
      if (at < count) out += unused;
      out += at + count < count + contents.state.size() ? ' ' : '\n';
    }
  }
}

}  // namespace

bool is_paddle_checkpoint(const std::string& directory) {
  std::error_code ignored;
  if (fs::exists(manifest_path(directory), ignored) ||
      fs::exists(previous_manifest_path(directory), ignored)) {
    return false;
  }
  const std::vector<Folder> folders = folders_of(directory);
  return std::any_of(folders.begin(), folders.end(),
                     [](const Folder& folder) { return !folder.sparse.empty() || !folder.dense.empty(); });
}

LoadedTables load_paddle_checkpoint(const std::string& directory, ServerPlace place,
                                    const std::vector<TableConfig>& tables) {
  std::vector<Folder> folders = folders_of(directory);
  std::vector<TableConfig> ordered = tables;
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  LoadedTables out;
  out.tables = std::make_unique<TableSet>(tables, place);
  const std::vector<std::vector<float>> dense = read_dense(folders);
  std::erase_if(folders, [](const Folder& folder) { return folder.sparse.empty(); });
  std::size_t next_folder = 0;
  std::uint64_t next_value = 0;
  for (const TableConfig& config : ordered) {
    if (config.kind == TableConfig::Kind::dense) {
      if (dense.size() - next_value >= config.width) {
        load_dense(std::span(dense).subspan(next_value, config.width), config, place,
                   out.tables->dense(config.id));
      }
      next_value += std::min<std::uint64_t>(config.width, dense.size() - next_value);
    } else if (next_folder++ < folders.size()) {
      load_sparse(folders[next_folder - 1].sparse, place, *out.tables, out.tables->sparse(config.id));
    }
  }
  std::uint64_t wanted = 0;
  for (const TableConfig& config : ordered)
    wanted += config.kind == TableConfig::Kind::dense ? config.width : 0;
  if (next_folder != folders.size() || wanted != dense.size()) {
    throw Error(ErrorKind::config,
                directory + " has " + std::to_string(folders.size()) + " sparse tables and " +
                    std::to_string(dense.size()) + " dense values; this program has " +
                    std::to_string(next_folder) + " and " + std::to_string(wanted),
                "load what the same network saved");
  }
  return out;
}

void save_paddle_checkpoint(const std::string& directory, const std::vector<TableConfig>& tables,
                            const TableCut& cut, std::uint32_t shards) {
  std::vector<TableConfig> ordered = tables;
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  std::size_t next = 0;
  std::string dense;
  for (const TableConfig& config : ordered) {
    if (config.kind == TableConfig::Kind::dense) {
      append_dense(config, cut.dense(config.id), dense);
    } else {
      save_sparse(table_directory(directory, next++), config, cut, shards);
    }
  }
  if (!dense.empty()) write_gzip(table_directory(directory, next) + "/part-000.gz", dense);
}

}  // namespace fleetrun::ps
