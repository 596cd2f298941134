// What a pod of Kubernetes tells of the job that it belongs to:
// who it is, how many pods there are, where they meet. Pure.
//
//   who set it          what counts, and what it means
//   PaddleJob operator  PADDLE_TRAINERS, PADDLE_TRAINER_ID, POD_IP, TRAINING_ROLE: hosts, this one's rank,
//                       address and role (a trainer's where there is none)
//     elastic           PADDLE_ELASTIC_SERVER, _NP, _JOB_ID: an etcd, the number of pods, the job's id
//   Volcano             VC_TASK_INDEX, VC_<TASK>_HOSTS, VC_<TASK>_NUM, HOSTNAME: hosts by task, this one's
//                       place
//   JobSet              JOBSET_NAME, REPLICATED_JOB_NAME, JOB_COMPLETION_INDEX, with --nnodes: rank, first
//                       pod's name
//   Indexed Job         JOB_COMPLETION_INDEX, HOSTNAME, with --nnodes: rank, first pod's name
//   PyTorchJob          MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK: first pod's name, pods, rank
//
// PyTorchJob's and the two kinds of jobs count only in a pod (KUBERNETES_SERVICE_HOST), since other programs
// set variables of these names too. None counts in a process that a launcher has started (LOCAL_RANK,
// FLEETRUN_RANK, …): a fleetrun in it is a job of its own. PET_* variables are settings of fleetrun's
// (launcher/model/job_settings) and are not looked at here.
//
// The first pod of a JobSet is found by the names that JobSet gives to pods, and that of an Indexed Job by a
// headless service that is named like the job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/model/job_config.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

struct PodEnvironment {
  enum class Part { any, server, trainer } part = Part::any;  // server, trainer: what alone runs in this pod

  std::string engine;                   // "Volcano", for people
  std::vector<std::string> understood;  // the variables' names, likewise
  Rendezvous::Kind kind = Rendezvous::Kind::master;
  Endpoint master;
  bool master_by_torchrun = false;  // the port of `master` is the store's
  std::string etcd, job_id;         // of an elastic PaddleJob
  NodeCount nodes;
  int node_rank = -1;
  std::string host;  // this pod's address, where it is told

  bool operator==(const PodEnvironment&) const = default;
};

/// `asked` is --nnodes where the user gave it. nullopt: this is not a pod of a job of several, or it does not
/// say enough. Throws: Error(config) for variables that disagree; the message names them.
std::optional<PodEnvironment> pod_environment(const Environ& environ, std::optional<NodeCount> asked);

/// A launcher has started this process as one of a job.
bool is_process_of_a_job(const Environ& environ);

}  // namespace fleetrun::launcher
