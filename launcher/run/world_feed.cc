#include "launcher/run/world_feed.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/json_text.h"
#include "runtime/base/unique_fd.h"

namespace fleetrun::launcher {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::ordered_json;
using boost::system::error_code;
using Line = std::shared_ptr<const std::string>;  // shared by the channels that still have to write it

Json processes(const World& world, int Member::*first, std::vector<std::uint16_t> PodOffer::*ports) {
  Json list = Json::array();
  for (const Member& member : world.members) {
    const std::vector<std::uint16_t>& own = member.offer.*ports;
    for (std::size_t i = 0; i < own.size(); ++i) {
      list.push_back({{"rank", member.*first + static_cast<int>(i)},
                      {"endpoint", to_string(Endpoint{member.offer.host, own[i]})},
                      {"node", member.name},
                      {"id", member.node}});
    }
  }
  return list;
}

Json servers(const World& world) {
  Json list = processes(world, &Member::first_server, &PodOffer::servers);
  for (const TakenOver& server : world.taken_over) {
    const auto rank = world.rank_of(server.node);
    list.push_back({{"rank", server.rank},
                    {"endpoint", to_string(server.endpoint)},
                    {"node", rank ? world.members[*rank].name : ""},
                    {"id", server.node}});
  }
  return list;
}

/// The way to one process. Owned by its feed and by the wait for its pipe.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  Channel(asio::io_context& loop, UniqueFd write_end, UniqueFd read_end)
      : ours_(loop, write_end.release()), theirs_(std::move(read_end)) {
    ours_.non_blocking(true);
  }

  int theirs() const noexcept { return theirs_.value(); }
  void started() { theirs_.reset(); }
  void close() {
    error_code ignored;
    ours_.close(ignored);
    theirs_.reset();
  }

  void tell(Line line) {
    next_ = std::move(line);
    write();
  }

 private:
  void write() {
    while (ours_.is_open() && !waiting_) {
      if (!now_) {
        if (!next_) return;
        now_ = std::exchange(next_, nullptr);
        written_ = 0;
      }
      const ssize_t count = ::write(ours_.native_handle(), now_->data() + written_, now_->size() - written_);
      if (count > 0) {
        written_ += static_cast<std::size_t>(count);
        if (written_ == now_->size()) now_.reset();
      } else if (count < 0 && errno == EAGAIN) {
        wait();
      } else if (count < 0 && errno != EINTR) {
        close();  // nobody reads there any more
      }
    }
  }

  void wait() {
    waiting_ = true;
    ours_.async_wait(asio::posix::stream_descriptor::wait_write,
                     [self = shared_from_this()](const error_code& error) {
                       self->waiting_ = false;
                       if (!error) self->write();
                     });
  }

  asio::posix::stream_descriptor ours_;
  UniqueFd theirs_;
  Line now_, next_;  // being written; after it
  std::size_t written_ = 0;
  bool waiting_ = false;
};

class Feed final : public WorldFeed, public std::enable_shared_from_this<Feed> {
 public:
  explicit Feed(bool in_place) : in_place_(in_place) {}

  void publish(const World& world, std::size_t node_rank) override {
    line_ = std::make_shared<const std::string>(world_line(world, node_rank, in_place_));
    for (const auto& channel : channels_) {
      if (channel) channel->tell(line_);
    }
  }

  MakeJobPart part() override;

  /// A new channel, with the newest world; -1 when the machine gives no pipe.
  int open(asio::io_context& loop, std::size_t index) {
    close(index);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
    if (channels_.size() <= index) channels_.resize(index + 1);
    channels_[index] = std::make_shared<Channel>(loop, UniqueFd(ends[1]), UniqueFd(ends[0]));
    if (line_) channels_[index]->tell(line_);
    return channels_[index]->theirs();
  }
  void started(std::size_t index) {
    if (index < channels_.size() && channels_[index]) channels_[index]->started();
  }
  void close(std::size_t index) {
    if (index < channels_.size() && channels_[index]) std::exchange(channels_[index], nullptr)->close();
  }
  void close() {
    for (std::size_t index = 0; index < channels_.size(); ++index) close(index);
  }

 private:
  bool in_place_;
  Line line_;
  std::vector<std::shared_ptr<Channel>> channels_;  // by index in the plan
};

class FeedPart final : public JobPart {
 public:
  FeedPart(std::shared_ptr<Feed> feed, JobControl& control) : feed_(std::move(feed)), control_(control) {}
  ~FeedPart() override { feed_->close(); }

  int open_descriptor(std::string_view variable, std::size_t index) override {
    return variable == kWorldVariable ? feed_->open(control_.loop(), index) : -1;
  }

  void on_event(const JobEvent& event) override {
    if (const auto* started = std::get_if<event::ProcessStarted>(&event)) feed_->started(started->index);
    if (const auto* failed = std::get_if<event::ProcessNotStarted>(&event)) feed_->close(failed->index);
    if (const auto* exited = std::get_if<event::ProcessExited>(&event)) feed_->close(exited->index);
    if (std::holds_alternative<event::JobEnded>(event)) feed_->close();
  }

 private:
  std::shared_ptr<Feed> feed_;  // owned with whoever publishes
  JobControl& control_;
};

MakeJobPart Feed::part() {
  return
      [self = shared_from_this()](JobControl& control) { return std::make_unique<FeedPart>(self, control); };
}

}  // namespace

std::string world_line(const World& world, std::size_t node_rank, bool in_place) {
  Json nodes = Json::array();
  for (const Member& member : world.members) nodes.push_back(member.name);
  const Json line = {{"epoch", world.generation},
                     {"attempt", world.attempt},
                     {"run", world.run},
                     {"hash", world.hash()},
                     {"in_place", in_place},
                     {"node", node_rank < world.members.size() ? world.members[node_rank].node : ""},
                     {"node_rank", node_rank},
                     {"nodes", std::move(nodes)},
                     {"trainers", processes(world, &Member::first_trainer, &PodOffer::trainers)},
                     {"servers", servers(world)}};
  return json_text(line) + "\n";
}

std::shared_ptr<WorldFeed> make_world_feed(bool in_place) {
  return std::make_shared<Feed>(in_place);
}

}  // namespace fleetrun::launcher
