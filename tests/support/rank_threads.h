// Ranks as threads of the test.
#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace fleetrun::tests {

/// Runs `body(rank)` for every rank at once, and throws what the lowest rank threw that threw.
inline void run_ranks(int ranks, const std::function<void(int)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace fleetrun::tests
