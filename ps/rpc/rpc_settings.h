// What both ends of a connection agree on beside the bytes (ps/base/wire.h).
#pragma once

namespace fleetrun::ps {

/// The one gRPC method: which request it is, the request's own header says.
inline constexpr const char* kRpcMethod = "/fleetrun.ParameterServer/Call";

/// A silent peer is asked for a sign of life this often …
inline constexpr int kKeepaliveMs = 5000;
/// … and is gone when none came for this long. A host under load answers late, so it is longer than the
/// first.
inline constexpr int kKeepaliveTimeoutMs = 10000;
/// A peer that pings this often too early, without anything having been sent to it in between, is hung up on.
inline constexpr int kPingStrikes = 100;
/// Calls of one trainer that a server takes at once. A trainer thread in sync mode waits in one, so it bounds
/// them too (ps/base/wire.h, kMaxThreads).
inline constexpr int kMaxCalls = 1024;
inline constexpr int kMetadataBytes = 8 << 10;
/// The longest HTTP/2 frame there is, and the window of a stream: a request of a few MB goes out without
/// waiting for the other side.
inline constexpr int kFrameBytes = (1 << 24) - 1;
inline constexpr int kWindowBytes = 16 << 20;

}  // namespace fleetrun::ps
