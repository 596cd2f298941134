// What changes tables: pushes, and the first values of dense tables.
#include <utility>

#include "ps/server/server_state.h"

namespace fleetrun::ps {

std::unique_ptr<wire::PushRequest> Server::State::read_checked_push(Reader& body) const {
  quota.check();
  auto request = std::make_unique<wire::PushRequest>(wire::read_push(body));
  current()->check(*request);
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
