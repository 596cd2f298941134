// What a controller and an agent say to each other over the standard input and output of `fleetrun agent
// --stdin`.
//
//   agent → controller:  marker, then hello, and after its order: output | log | ended, then file … files_end
//   controller → agent:  order | start, then signal, collect, bye
//   meanwhile, for the launcher there and the coordinator here (launcher/remote/tunnel):  dial, bytes, hangup
//   before an order, where files travel (launcher/ship):  offer → , ← wanted, piece … → , ← shipped
//   frame := u32 length of what follows | u32 host | u8 type | fields            (runtime/base/codec)
//
// What a login shell prints comes before the marker and is skipped. `host` counts the hosts of the job from
// 0; an agent that was told to start others (start) passes on the frames of those hosts, both ways. End of
// file on its standard input is an agent's order to stop everything and end. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "launcher/model/host_list.h"
#include "launcher/ship/ship_list.h"

namespace fleetrun::launcher::remote {

constexpr std::uint32_t kProtocol = 3;  // another one is another version of what is below
constexpr std::string_view kMarker =
    "\x02"
    "fleetrun agent\x03\n";
constexpr std::size_t kLongestNoise = 1 << 20;   // before the marker
constexpr std::size_t kLongestOrder = 64 << 20;  // to an agent
constexpr std::size_t kLongestReport = 1 << 20;  // from an agent: more is not taken in

struct Hello {
  std::uint32_t protocol = kProtocol;
  std::string version;     // of fleetrun there
  std::string connection;  // its SSH_CONNECTION: our address as it sees it, a port, its own address, a port
  std::string host;        // its own name for itself
  bool operator==(const Hello&) const = default;
};
/// encode(LaunchOrder). In bytes, since it may be passed on.
struct Order {
  std::string bytes;
  bool operator==(const Order&) const = default;
};
/// Start agents on these hosts, by number, and pass on what is said.
struct Start {
  std::vector<std::uint32_t> numbers;
  std::vector<RemoteHost> hosts;
  std::vector<std::string> ssh;
  std::string program;  // fleetrun there
  std::int32_t window = 0;
  bool ships = false;     // what came here is to come there, too
  std::string ship_root;  // where it lies there
  bool operator==(const Start&) const = default;
};
/// What became of the login on a host that an agent was told to start;
/// nothing more is heard of a refused one.
struct Verdict {
  std::string reason;  // why it was refused
  std::string hint;
  bool operator==(const Verdict&) const = default;
};
/// The agent of a host that this agent had started is gone.
struct Gone {
  std::string why;
  bool operator==(const Gone&) const = default;
};
/// For the launcher there: as if it had got the signal itself.
struct Signal {
  std::int32_t number = 0;
  bool operator==(const Signal&) const = default;
};
/// What processes show: whole lines, or bytes as they are.
struct Output {
  std::string bytes;
  bool operator==(const Output&) const = default;
};
/// A LAUNCH line of the launcher there, with the lines that belong to it.
struct Log {
  std::string level, text;
  bool operator==(const Log&) const = default;
};
/// The launcher there has ended. `screen`: what it said last, the failure screen where there is one.
struct Ended {
  std::int32_t status = 0;
  std::string screen;
  bool operator==(const Ended&) const = default;
};
/// Send the logs. `marker`: the name of a file in the directory of logs that says that it is ours, seen from
/// here: then there is nothing to send.
struct Collect {
  std::string marker;
  bool operator==(const Collect&) const = default;
};
/// A piece of a file of the directory of logs; `path` is relative to it.
struct File {
  std::string path, bytes;
  bool first = false;  // the file begins here
  bool operator==(const File&) const = default;
};
struct FilesEnd {
  std::string error;  // why some are missing
  bool operator==(const FilesEnd&) const = default;
};
/// The agent may go.
struct Bye {
  bool operator==(const Bye&) const = default;
};
/// What the host is to have before an order comes.
struct Offer {
  ship::List list;
  bool operator==(const Offer&) const = default;
};
/// What it lacks of that.
struct Wanted {
  std::vector<ship::Range> items;
  bool operator==(const Wanted&) const = default;
};
/// All of it has come, or why not.
struct Shipped {
  std::string error, hint;
  bool operator==(const Shipped&) const = default;
};
/// How much of what a host lacks has been sent: from an agent that sends it there.
struct Progress {
  std::uint64_t sent = 0, total = 0;
  bool operator==(const Progress&) const = default;
};

/// Output is to stay where it is for now, or to come again; everything else goes on.
struct Hold {
  bool held = false;
  bool operator==(const Hold&) const = default;
};
/// Somebody connected to the entrance there, and is to come out here.
struct Dial {
  std::uint32_t stream = 0;
  bool operator==(const Dial&) const = default;
};
struct Bytes {
  std::uint32_t stream = 0;
  std::string bytes;
  bool operator==(const Bytes&) const = default;
};
/// That connection has ended on the side that says it.
struct Hangup {
  std::uint32_t stream = 0;
  bool operator==(const Hangup&) const = default;
};

using Message =
    std::variant<Hello, Order, Start, Verdict, Gone, Signal, Output, Log, Ended, Collect, File, FilesEnd, Bye,
                 Offer, Wanted, ship::Piece, Shipped, Progress, Hold, Dial, Bytes, Hangup>;

struct Addressed {
  std::uint32_t host = 0;
  Message message;
  bool operator==(const Addressed&) const = default;
};

std::string encode(const Addressed& frame);

/// Takes bytes as they arrive and gives whole frames.
class ChannelDecoder {
 public:
  /// `awaits_marker`: what comes before kMarker is noise.
  ChannelDecoder(std::size_t longest, bool awaits_marker) : longest_(longest), marked_(!awaits_marker) {}

  void append(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole frame, or nullopt until more bytes have come.
  /// Throws: Error(data) when the bytes are not frames, or too long, or there is too much noise.
  std::optional<Addressed> next();
  /// Once: the host asks for fleetrun itself, before any marker (launcher/ship/start_script).
  bool take_wish();
  /// What has come while there is no marker: of a login shell that never started fleetrun its last words.
  std::string_view noise() const noexcept { return marked_ ? std::string_view() : buffer_; }

 private:
  bool find_marker();

  std::string buffer_;
  std::size_t longest_;
  bool marked_;
};

}  // namespace fleetrun::launcher::remote
