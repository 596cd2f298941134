#include "launcher/remote/controller_coordinator.h"

#include <utility>

#include "launcher/cluster/coordinator.h"
#include "launcher/cluster/node_settings.h"
#include "runtime/base/version.h"

namespace fleetrun::launcher::remote {
namespace {

class Coordinating final : public ControllerCoordinator, private CoordinatorObserver {
 public:
  Coordinating(boost::asio::io_context& loop, const CoordinatorSettings& settings,
               const CoordinatorPlace& place, ControllerListener& listener)
      : listener_(listener), coordinator_(start_coordinator(loop, settings, place, *this)) {}

  std::vector<Endpoint> endpoints() const override { return coordinator_->endpoints(); }
  void stop(int signal) override { coordinator_->stop(signal); }
  void end(const JobEnd& end) override { coordinator_->end(end); }

 private:
  void on_event(const ClusterEvent& event) override {
    if (!std::holds_alternative<JobEnded>(event)) listener_.on_event(event);
  }
  void on_warning(const std::string& text, const std::string& hint) override {
    listener_.on_warning(hint.empty() ? text : text + " (" + hint + ")");
  }
  void on_over(const JobEnd& end) override { listener_.on_event(JobEnded{end}); }

  ControllerListener& listener_;
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace

StartCoordinator controller_coordinator(const JobConfig& config, const ControllerPlan& plan,
                                        const Secret& secret) {
  JobConfig of_controller = config;
  of_controller.rendezvous.kind = Rendezvous::Kind::master;
  of_controller.rendezvous.may_coordinate = false;  // nobody takes this one's place
  of_controller.rendezvous.nodes = plan.nodes;
  of_controller.rendezvous.elastic = plan.elastic;
  of_controller.rendezvous.addresses.clear();
  CoordinatorSettings settings = coordinator_settings(of_controller);
  for (const HostPart& part : plan.hosts) settings.expected.push_back(part.host.name);
  CoordinatorPlace place;
  if (!config.rendezvous.insecure) place.channel.secret = secret;
  place.channel.secret_source = "what fleetrun handed to the hosts";
  place.channel.version = FLEETRUN_VERSION;
  return [settings, place](boost::asio::io_context& loop, const std::vector<std::string>& addresses,
                           ControllerListener& listener) -> std::unique_ptr<ControllerCoordinator> {
    CoordinatorPlace here = place;
    for (const std::string& address : addresses) here.listen.push_back({address, 0});
    return std::make_unique<Coordinating>(loop, settings, here, listener);
  };
}

}  // namespace fleetrun::launcher::remote
