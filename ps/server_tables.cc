// Pulls and pushes. In sync mode a push waits for the step that it is part of.
#include <utility>

#include "ps/server_state.h"

namespace fleetrun::ps {

void Server::State::push(const wire::Header& header, Reader& body, Respond& respond) {
  auto request = std::make_unique<wire::PushRequest>(wire::read_push(body));
  const std::shared_ptr<TableSet> set = current();
  set->check(*request);
  figures->pushed(request->sections);
  if (options.mode != Mode::sync) {
    set->apply(*request);
    std::exchange(respond, nullptr)(Message());
    return;
  }
  // A copy: when the push is refused, handle() answers.
  meeting.push({{header.trainer, header.thread}, std::move(request), respond});
  respond = nullptr;
}

Message Server::State::set_dense(Reader& body) {
  const wire::Floats block = wire::read_floats(body);
  Message copy;
  const auto values = body.array<float>(block.floats, copy);
  wire::expect_end(body);
  current()->set_dense(block, values);
  return {};
}

}  // namespace fleetrun::ps
