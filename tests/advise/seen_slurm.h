// A Slurm as it is seen, made by hand: whatever it is told stands in its answers. Counts what is
// asked and refuses every command, so that a test fails that would change something.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "advise/books.h"
#include "slurm/link.h"

namespace berth::test {

class SeenSlurm final : public slurm::Link {
 public:
  slurm::Version its_version{.year = 24, .month = 11, .micro = 5};
  std::vector<slurm::Job> its_jobs{};
  std::vector<slurm::Node> its_nodes{};
  std::vector<slurm::Partition> its_partitions{};
  std::vector<slurm::Switch> its_topology{};
  std::vector<slurm::Reservation> its_reservations{};
  slurm::Config its_config{.all = {{"ClusterName", "lab"},
                                   {"AccountingStorageType", "accounting_storage/slurmdbd"},
                                   {"SelectTypeParameters", "CR_CORE_MEMORY"}}};
  bool is_down = false;
  int asked_for_jobs = 0;

  slurm::Linked<slurm::Version> version() override { return said(its_version); }
  slurm::Linked<std::optional<std::vector<slurm::Job>>> jobs() override {
    ++asked_for_jobs;
    return said(std::optional{its_jobs});
  }
  slurm::Linked<std::optional<std::vector<slurm::Node>>> nodes() override {
    return said(std::optional{its_nodes});
  }
  slurm::Linked<std::vector<slurm::Partition>> partitions() override {
    return said(its_partitions);
  }
  slurm::Linked<std::vector<slurm::Switch>> topology() override { return said(its_topology); }
  slurm::Linked<std::vector<slurm::Reservation>> reservations() override {
    return said(its_reservations);
  }
  slurm::Linked<slurm::Config> config() override { return said(its_config); }

  slurm::Linked<void> place(const slurm::JobRef&, const slurm::Placement&) override {
    return never();
  }
  slurm::Linked<void> hold(const slurm::JobRef&) override { return never(); }
  slurm::Linked<void> release(const slurm::JobRef&) override { return never(); }
  slurm::Linked<void> requeue_held(const slurm::JobRef&) override { return never(); }
  slurm::Linked<void> cancel(const slurm::JobRef&) override { return never(); }
  slurm::Linked<void> signal(const slurm::JobRef&, int) override { return never(); }
  slurm::Linked<void> signal_script(const slurm::JobRef&, int) override { return never(); }
  slurm::Linked<void> suspend(const slurm::JobRef&) override { return never(); }
  slurm::Linked<void> resume(const slurm::JobRef&) override { return never(); }
  slurm::Linked<void> set_time_limit(const slurm::JobRef&, std::int64_t) override {
    return never();
  }
  slurm::Linked<void> set_admin_comment(const slurm::JobRef&, const std::string&) override {
    return never();
  }
  slurm::Linked<void> resume_node(const std::string&) override { return never(); }

  /// n1, n2 … behind those there are, all in partition main.
  void add_nodes(int count, const std::string& type, std::int64_t gpus) {
    for (int i = 0; i < count; ++i) {
      slurm::Node node;
      node.name = "n" + std::to_string(its_nodes.size() + 1);
      node.state = "IDLE";
      node.partitions = {"main"};
      node.cpus = 32;
      node.memory_mib = 256'000;
      if (gpus > 0) node.gres = {{.name = "gpu", .type = type, .count = gpus}};
      its_nodes.push_back(std::move(node));
    }
  }
  /// Waits, for this reason; by default of games for one node.
  slurm::Job& wait(std::uint32_t id, std::int64_t gpus, const std::string& reason) {
    slurm::Job job;
    job.key = {.job = id, .restarts = 0, .submitted = kNow - 100 + id};
    job.user = "games";
    job.uid = 5;
    job.account = "lab";
    job.partition = "main";
    job.qos = "normal";
    job.name = "job" + std::to_string(id);
    job.phase = slurm::JobPhase::Pending;
    job.reason = reason;
    job.priority = 1'000 - id;
    job.time_limit = 3'600;
    job.cpus = 1;
    if (gpus > 0) job.per_node = {{.name = "gpu", .type = {}, .count = gpus}};
    its_jobs.push_back(std::move(job));
    return its_jobs.back();
  }
  /// Runs since a minute on the first GPUs of one node that are free.
  slurm::Job& run(std::uint32_t id, std::int64_t gpus, const std::string& on) {
    slurm::Job& job = wait(id, gpus, "None");
    job.phase = slurm::JobPhase::Running;
    job.started = kNow - 60;
    slurm::Node& node = *std::find_if(its_nodes.begin(), its_nodes.end(),
                                      [&](const slurm::Node& each) { return each.name == on; });
    std::int64_t used = 0;
    for (const slurm::GresCount& held : node.gres_held) used += held.count;
    slurm::GresCount gres{.name = "gpu", .type = node.gres.front().type, .count = gpus};
    for (std::int64_t i = 0; i < gpus; ++i)
      gres.indices.push_back(static_cast<std::int32_t>(used + i));
    job.held = {{.node = on, .gres = {gres}, .cpus = 1, .memory_mib = 1'000}};
    node.gres_held.push_back(gres);
    node.cpus_held += 1;
    node.state = "MIXED";
    return job;
  }

  static constexpr std::int64_t kNow = 1'800'000'000;  // Unix seconds

 private:
  template <class T>
  slurm::Linked<T> said(T value) const {
    if (is_down)
      return tl::unexpected<slurm::LinkError>(
          slurm::LinkError{slurm::Refusal::Unreachable, "Unable to contact slurm controller"});
    return value;
  }
  static slurm::Linked<void> never() {
    ADD_FAILURE() << "advice has changed something";
    return {};
  }
};

/// Accounting and limits as a test writes them.
class SeenBooks final : public advise::Books {
 public:
  std::vector<slurm::Job> past{};
  std::string limits_text{};
  std::vector<advise::PastSpan> asked{};

  Result<std::vector<slurm::Job>> ended(const advise::PastSpan& span) override {
    asked.push_back(span);
    std::vector<slurm::Job> found;
    for (const slurm::Job& job : past) {
      const bool is_named =
          span.jobs.empty() || std::find(span.jobs.begin(), span.jobs.end(),
                                         std::to_string(job.key.job)) != span.jobs.end();
      if (is_named && job.ended >= span.from && job.ended < span.until) found.push_back(job);
    }
    return found;
  }
  Result<std::string> limits(const advise::LimitHolder&) override { return limits_text; }
};

}  // namespace berth::test
