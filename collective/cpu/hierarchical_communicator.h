// A communicator in two levels, for groups whose ranks reach some of the others much better than the rest:
// ranks of a host form an inner group, the first ranks of the inner groups form the outer one.
//
//   all_reduce      reduce within, all_reduce among the first ranks, broadcast within
//   broadcast       within the root's group, among the first ranks, within the others
//   reduce          within, among the first ranks, to the root
//   all_gather      within, among the first ranks, broadcast within
//   reduce_scatter  reduce within, reduce_scatter among the first ranks, shares within
//   barrier         within, among the first ranks, within
//   all_to_all, send, receive   all ranks alike: what crosses hosts has to anyway
//
// With P ranks in G groups, S bytes of which cross hosts: an all_reduce sends 2 S (G-1) over all links
// together, where P ranks alike by a ring send up to 2 S (P-1)/P over each of the G links that lie between
// two hosts. Sums are rounded in another order than without levels; all ranks get the same bits.
#pragma once

#include <memory>

#include "collective/base/communicator.h"
#include "collective/base/grouping.h"

namespace fleetrun::collective {

struct Levels {
  /// This rank's inner group, whose ranks are in the group's order; null where it is alone there.
  std::unique_ptr<Communicator> inner;
  /// Of the inner groups' first ranks, in the order of the groups; null on all other ranks.
  std::unique_ptr<Communicator> outer;
  /// Of all ranks.
  std::unique_ptr<Communicator> flat;
};

/// `grouping` is not flat, and the same on all ranks. Threads: as Communicator.
std::unique_ptr<Communicator> make_hierarchical_communicator(Place place, Grouping grouping, Levels levels);

}  // namespace fleetrun::collective
