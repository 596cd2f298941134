// Who coordinates a job is settled by etcd: the launcher whose transaction creates the key
// /fleetrun/JOB/coordinator.
//
// The key belongs to a lease of 3 s, which the leader renews every second; when the leader ends, or is cut
// off, the key goes, and the next one is created. The fence is the revision at which the key was created.
// What the leader publishes is stored under /fleetrun/JOB/state, only while that very key is there
// (launcher/etcd/state_writer.h), so no two leaders can both store a world, whatever clocks and networks do.
//
// etcd out of reach:
//   at the start      it is tried for the whole join_timeout, then `failed` names the address
//   while leading     after 2 s without an answer the lead is in doubt. The world that runs goes on, as long
//                     as its members stay with their coordinator: nothing can be stored, so no other world is
//                     formed. When etcd is back, the leader goes on with its lease, or with a new one, if
//                     nobody else was elected; else lost_lead. A publish
//                     that waits longer than join_timeout is `failed`
//   while following   nothing; should the leader be lost too, the next one is elected when etcd is back
// A leader that was stopped or asleep finds its lease over: lost_lead, and it follows or stands again.
//
// The state goes at the end of a job, and 30 s after the last leader of one whose launchers were all killed:
// a job with the same id that starts within that time goes on with greater generations. Nothing secret is
// stored: an etcd that lies can keep a job from starting, but nodes prove the job's secret to each other, not
// to etcd.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "launcher/etcd/etcd_client.h"
#include "launcher/model/discovery.h"
#include "launcher/net/etcd_address.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launcher {

struct EtcdDiscoverySettings {
  EtcdAddress address;
  std::string job_id;
  bool may_coordinate = true;
  std::chrono::milliseconds join_timeout{600'000};

  std::chrono::seconds lease{3}, state_lease{30};
  std::chrono::milliseconds renewal{1000}, trust{2000};
  EtcdTimes times{};
};

std::unique_ptr<Discovery> make_etcd_discovery(boost::asio::io_context& loop, EtcdDiscoverySettings settings);

/// The coordinator's key, as it is written: {"coordinator": "10.0.0.1:4711", "version": 1}.
std::string coordinator_text(const Endpoint& coordinator);
/// Throws: Error(data) for what no fleetrun has written.
Endpoint coordinator_in(std::string_view text);

}  // namespace fleetrun::launcher
