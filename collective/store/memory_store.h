// A store within one process, for ranks that are threads of it.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>

#include "collective/store/store.h"

namespace fleetrun::collective {

class MemoryStore : public Store {
 public:
  void set(const std::string& name, const std::string& value) override;
  std::string wait(const std::string& name, Clock::time_point deadline) override;
  std::int64_t add(const std::string& name, std::int64_t amount) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::int64_t> counters_;
};

}  // namespace fleetrun::collective
