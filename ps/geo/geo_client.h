// Geo mode: a trainer that trains a copy of the tables of its own, with the user's rule, and every so many
// pushes exchanges differences with the servers, whose tables add up:
//
//   change = (mine - the servers') / trainers, for what was touched     sent, and counted as the servers'
//                                                                       from now on
//   mine += now - the servers' as I knew it                             for what others have touched, and
//                                                                       dense tables
//
// so that a change of mine that the servers have only a share of stays in my copy until it has got there too.
// This is what Paddle's geo communicator does; an update of one trainer is exactly the user's optimizer.
//
// Where epochs are counted (StepClient::counts_epochs), a trainer that is started again goes on after the
// steps that the servers have differences of: the steps since the last exchange are trained again. What its
// copy had beyond what it had sent is lost with it. Where some servers have the last differences of the
// process before and others not, the steps in question are trained again and sent to the latter, by
// themselves, and the copy is dropped: the former would be in it twice.
//
// A thread exchanges while training goes on. The next exchange waits for the one before, so a trainer is at
// most two intervals ahead of what it has heard. Pulls that make no rows (create = false:
// evaluation) go to the servers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ps/client/client.h"

namespace fleetrun::ps {

/// The servers' tables of `tables` in geo mode: changes are added to their values, rows keep no statistics.
/// Throws: Error(config) naming a table whose keys are admitted, or whose rows show statistics:
/// copies that differ cannot count.
std::vector<TableConfig> geo_tables(std::vector<TableConfig> tables);

struct GeoOptions {
  /// With the user's rules; the servers have geo_tables() of them.
  std::vector<TableConfig> tables;
  std::uint32_t trainers = 1;
  /// Pushes between two exchanges, at most: differences that fill a message go earlier.
  std::uint32_t steps = 400;
};

/// Begins, leaves and ends of epochs, barriers, saves and the goodbye exchange first, so that the servers
/// have what was trained. Throws: an error of the exchanging thread from the next call.
std::unique_ptr<Client> make_geo_client(std::unique_ptr<Client> servers, const GeoOptions& options);

}  // namespace fleetrun::ps
