// What a disk may hold of a directory after a power loss, given what was done to its files.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/integration/ps/saving/file_faults.h"

namespace fleetrun::tests {

/// A directory as a disk may hold it after a power loss:
/// what was synced is there, of the rest anything may be.
class DiskAfterPowerLoss {
 public:
  explicit DiskAfterPowerLoss(const std::string& directory) {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      names_[entry.path().string()] = static_cast<int>(files_.size());
      files_.push_back({bytes, bytes});
    }
    durable_names_ = names_;
  }

  void take(const FileStep& step, const std::string& directory) {
    switch (step.kind) {
      case FileStep::Kind::create:
        names_[step.path] = static_cast<int>(files_.size());
        files_.emplace_back();
        break;
      case FileStep::Kind::write: {
        std::string& bytes = files_[static_cast<std::size_t>(names_.at(step.path))].written;
        bytes.resize(std::max(bytes.size(), step.at + step.bytes.size()));
        bytes.replace(step.at, step.bytes.size(), step.bytes);
        return;
      }
      case FileStep::Kind::sync:
        if (step.path == directory) {
          durable_names_ = names_;
          pending_.clear();
        } else {
          File& file = files_[static_cast<std::size_t>(names_.at(step.path))];
          file.durable = file.written;
        }
        return;
      case FileStep::Kind::rename:
        names_[step.to] = names_.at(step.path);
        names_.erase(step.path);
        break;
      case FileStep::Kind::unlink:
        names_.erase(step.path);
        break;
      case FileStep::Kind::done:
        return;
    }
    pending_.push_back({step, step.kind == FileStep::Kind::create ? static_cast<int>(files_.size()) - 1 : 0});
  }

  // Of what was not synced, `keeps` says for each thing whether it is there.
  template <class Keeps>
  void write(const std::string& directory, Keeps keeps) const {
    std::map<std::string, int> names = durable_names_;
    for (const auto& [step, file] : pending_) {
      if (!keeps()) continue;
      if (step.kind == FileStep::Kind::create) names[step.path] = file;
      if (step.kind == FileStep::Kind::unlink) names.erase(step.path);
      if (step.kind == FileStep::Kind::rename && names.contains(step.path)) {
        names[step.to] = names[step.path];
        names.erase(step.path);
      }
    }
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    for (const auto& [name, number] : names) {
      const File& file = files_[static_cast<std::size_t>(number)];
      std::string bytes = file.written;
      // Bytes that were not synced: there, lost, or zeros where only the length came to the disk.
      if (file.durable != file.written && !keeps()) {
        bytes = file.durable;
        if (keeps()) bytes.resize(file.written.size());
      }
      std::ofstream(directory + "/" + std::filesystem::path(name).filename().string(), std::ios::binary)
          << bytes;
    }
  }

 private:
  struct File {
    std::string written;
    std::string durable;
  };
  struct Pending {
    FileStep step;
    int file;
  };

  std::vector<File> files_;
  std::map<std::string, int> names_;
  std::map<std::string, int> durable_names_;
  std::vector<Pending> pending_;
};

}  // namespace fleetrun::tests
