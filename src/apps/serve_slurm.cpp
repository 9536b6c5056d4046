#include "apps/serve_slurm.h"

#include <fmt/format.h>

#include "slurm/text_link.h"
#include "slurm_host/host_maker.h"
#include "slurm_host/slurm_cluster.h"

namespace berth {

namespace {

std::shared_ptr<slurm::Link> link_of(const SlurmConfig& options) {
  return std::make_shared<slurm::TextLink>(slurm::TextLinkSettings{.directory = options.commands});
}

}  // namespace

Result<Cluster> cluster_of_slurm(const SlurmConfig& options) {
  const auto link = link_of(options);
  const auto nodes = link->nodes();
  if (!nodes) return fail(fmt::format("--engine slurm: {}", nodes.error().text));
  const auto switches = link->topology();  // without one all nodes are in one rack
  const auto config = link->config();
  const std::string name = config ? config->value("ClusterName") : std::string{};
  return cluster_from(nodes->value_or(std::vector<slurm::Node>{}),
                      switches ? *switches : std::vector<slurm::Switch>{},
                      name.empty() ? "slurm" : name);
}

void decide_for_slurm(const SlurmConfig& options, DaemonOptions& daemon) {
  daemon.host = slurm_host_maker(link_of(options));
  daemon.host_traits = slurm_traits();
  daemon.training_socket.clear();  // jobs run on other machines
  daemon.admission.closed = "jobs are submitted to Slurm here: sbatch";
}

}  // namespace berth
