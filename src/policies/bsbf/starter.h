// Starts a waiting job where it can go: on devices of its own, or on free devices and beside
// partners that have a device for themselves, the best ones or the first that have memory enough.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "policies/bsbf/choice.h"
#include "policies/bsbf/newcomers.h"
#include "policies/bsbf/partners.h"
#include "policies/bsbf/running_jobs.h"
#include "policies/kit/pass.h"

namespace berth::bsbf {

enum class PartnerChoice : std::uint8_t {
  FirstFit,  // whoever leaves memory enough
  Best,      // only if that lowers the average completion time of the pair
};

/// Seconds that a waiting job would run by itself, as far as known.
[[nodiscard]] double length_alone(const View& view, JobId job);

class Starter {
 public:
  struct Rules {
    PartnerChoice choice = PartnerChoice::Best;
    PartnerRank rank = PartnerRank::AverageTime;
  };
  Starter(Rules rules, Newcomers& newcomers, RunningJobs& running)
      : rules_(rules), newcomers_(newcomers), running_(running) {}

  [[nodiscard]] bool try_alone(Pass& pass, JobId job);
  /// All devices of one server, free ones first. Servers with the least room that suffices first.
  [[nodiscard]] bool try_one_server(Pass& pass, JobId job, PoolId pool);
  /// The free devices of the pool and those of partners. Nothing: it has started. Otherwise how
  /// many devices it lacks, or 0 if that is not why it cannot start.
  [[nodiscard]] std::optional<std::int32_t> share(Pass& pass, JobId job, PoolId pool);

 private:
  void begin_choice(const View& view, JobId job, PoolId pool);
  [[nodiscard]] bool try_server(Pass& pass, JobId job, PoolId pool, NodeId node);
  void add_first_fit(const View& view, JobId job, NodeId node);
  void search_partners(const View& view, JobId job, PoolId pool, std::optional<NodeId> only);
  void add_partners(std::optional<NodeId> only);
  [[nodiscard]] bool commit(Pass& pass, JobId job, PoolId pool);

  Rules rules_;
  Newcomers& newcomers_;
  RunningJobs& running_;
  PartnerSearch search_;
  Choice choice_;
  std::vector<std::pair<std::int32_t, NodeId>> servers_;  // scratch
  std::vector<JobId> residents_;                          // scratch
};

}  // namespace berth::bsbf
