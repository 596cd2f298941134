// A store for processes that were forked from the one that made it: in memory that they share.
#pragma once

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "collective/store/store.h"
#include "runtime/base/error.h"

namespace fleetrun::tests {

class ForkedStore : public collective::Store {
 public:
  ForkedStore() {
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    shared_ = new (memory) Shared{};
    pthread_mutexattr_t mutex;
    ::pthread_mutexattr_init(&mutex);
    ::pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    ::pthread_mutex_init(&shared_->mutex, &mutex);
    pthread_condattr_t condition;
    ::pthread_condattr_init(&condition);
    ::pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    ::pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
    ::pthread_cond_init(&shared_->changed, &condition);
  }
  ~ForkedStore() override { ::munmap(shared_, sizeof(Shared)); }
  ForkedStore(const ForkedStore&) = delete;

  void set(const std::string& name, const std::string& value) override {
    const Lock lock(shared_->mutex);
    Entry* entry = find(name);
    if (entry->name[0] != 0 && value != entry->value)
      throw Error(ErrorKind::config, name + " is set already");
    std::strncpy(entry->name, name.c_str(), sizeof entry->name - 1);
    std::strncpy(entry->value, value.c_str(), sizeof entry->value - 1);
    ::pthread_cond_broadcast(&shared_->changed);
  }
  std::string wait(const std::string& name, Clock::time_point deadline) override {
    const auto end = deadline.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(end);
    const timespec until{seconds.count(), std::chrono::nanoseconds(end - seconds).count()};
    const Lock lock(shared_->mutex);
    while (find(name)->name[0] == 0) {
      if (::pthread_cond_timedwait(&shared_->changed, &shared_->mutex, &until) == ETIMEDOUT)
        throw Error(ErrorKind::timeout, "nobody has set " + name);
    }
    return find(name)->value;
  }
  std::int64_t add(const std::string& name, std::int64_t amount) override {
    const Lock lock(shared_->mutex);
    Entry* entry = find(name);
    std::strncpy(entry->name, name.c_str(), sizeof entry->name - 1);
    return entry->number += amount;
  }

 private:
  struct Entry {
    char name[120];
    char value[1200];
    std::int64_t number;
  };
  struct Shared {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    Entry entries[500];
  };
  struct Lock {
    explicit Lock(pthread_mutex_t& mutex) : mutex(mutex) { ::pthread_mutex_lock(&mutex); }
    ~Lock() { ::pthread_mutex_unlock(&mutex); }
    pthread_mutex_t& mutex;
  };
  /// The entry of that name, or the first free one.
  Entry* find(const std::string& name) const {
    for (Entry& entry : shared_->entries)
      if (entry.name[0] == 0 || name == entry.name) return &entry;
    throw std::runtime_error("the store is full");
  }

  Shared* shared_;
};

}  // namespace fleetrun::tests
