// Which processes' logs are shown, and whether in colour: what --show and --color mean for a plan. Pure.
#pragma once

#include <vector>

#include "launcher/logs/job_view.h"
#include "launcher/model/job_config.h"
#include "launcher/model/plan.h"
#include "runtime/base/environ.h"

namespace fleetrun::launcher {

/// By index in the plan. Ranks are those of the first role that is waited for: the trainers.
/// Throws: Error(config) where a role or rank is chosen that the plan does not have.
std::vector<ViewedProcess> viewed_processes(const Plan& plan, const Show& show);

/// One process is shown as it is when nobody asked for names.
bool is_raw(const Show& show) noexcept;

/// All that is shown: by --show, or by torchrun's --tee, standard error on standard error.
std::vector<JobViewPart> views_of(const Plan& plan, const JobConfig& config, bool colour);

/// Whether to colour names. NO_COLOR and TERM=dumb count unless the user says otherwise.
bool use_colour(Color spec, bool terminal, const Environ& environ);

}  // namespace fleetrun::launcher
