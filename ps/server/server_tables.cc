// What changes tables: pushes, and the first values of dense tables.
#include <utility>

#include "ps/server/server_state.h"

namespace fleetrun::ps {

/// Rows that are there are served whatever the memory; those of tables on disk make room for each other.
void Server::State::check_quota(const wire::Sections& sections,
                                const std::vector<std::span<const std::uint64_t>>& keys) const {
  if (!quota.is_used_up()) return;
  if (current()->lacks_rows(sections, keys)) quota.refuse();
}

std::unique_ptr<wire::PushRequest> Server::State::read_checked_push(Reader& body) const {
  auto request = std::make_unique<wire::PushRequest>(wire::read_push(body));
  current()->check(*request);
  check_quota(request->sections, request->keys);
  metrics->pushed(request->sections);
  return request;
}

void Server::State::set_dense(Reader& body) {
  const wire::Floats block = wire::read_floats(body);
  Message copy;
  const auto values = body.array<float>(block.floats, copy);
  wire::expect_end(body);
  current()->set_dense(block, values);
}

}  // namespace fleetrun::ps
