// What --on_event tells of the processes of this host. Their job's end is the session's to tell, and in a job
// of several hosts the rest is the coordinator's: only it has the whole of it.
#pragma once

#include <functional>

#include "launcher/failure/report.h"
#include "launcher/model/job_notice.h"
#include "launcher/run/job_control.h"

namespace fleetrun::launcher {

/// `several_hosts`: only processes that are started again alone are told, which no other host decides.
MakeJobPart job_notices(bool several_hosts, std::function<void(JobNotice)> tell);

/// The job's end.
JobNotice notice_of(const Report& report);

}  // namespace fleetrun::launcher
