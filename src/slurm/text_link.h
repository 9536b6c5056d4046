// The link by Slurm's own commands: squeue, scontrol, scancel, each run once per question. Needs
// nothing but those commands and, to read, no rights; to command, those of an operator.
//
// One poll of jobs costs a run of squeue, whether anything has changed or not, and `scontrol -d
// show job` for jobs that have begun since the last one: only that tells which GPUs they have. A
// placement takes two commands; between them the job is still held, so that a crash there harms
// nobody.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "slurm/link.h"
#include "slurm/process.h"
#include "slurm/squeue_text.h"

namespace berth::slurm {

struct TextLinkSettings {
  std::string directory{};  // of the commands; empty: by PATH
  std::chrono::milliseconds deadline{30'000};
  std::size_t output_bytes = std::size_t{1} << 30;
};

class TextLink final : public Link {
 public:
  explicit TextLink(TextLinkSettings settings) : settings_(std::move(settings)) {}

  [[nodiscard]] Linked<Version> version() override;
  [[nodiscard]] Linked<std::optional<std::vector<Job>>> jobs() override;
  [[nodiscard]] Linked<std::optional<std::vector<Node>>> nodes() override;
  [[nodiscard]] Linked<std::vector<Partition>> partitions() override;
  [[nodiscard]] Linked<std::vector<Switch>> topology() override;
  [[nodiscard]] Linked<std::vector<Reservation>> reservations() override;
  [[nodiscard]] Linked<Config> config() override;

  [[nodiscard]] Linked<void> place(const JobRef& job, const Placement& placement) override;
  [[nodiscard]] Linked<void> hold(const JobRef& job) override;
  [[nodiscard]] Linked<void> release(const JobRef& job) override;
  [[nodiscard]] Linked<void> requeue_held(const JobRef& job) override;
  [[nodiscard]] Linked<void> cancel(const JobRef& job) override;
  [[nodiscard]] Linked<void> signal(const JobRef& job, int number) override;
  [[nodiscard]] Linked<void> signal_script(const JobRef& job, int number) override;
  [[nodiscard]] Linked<void> suspend(const JobRef& job) override;
  [[nodiscard]] Linked<void> resume(const JobRef& job) override;
  [[nodiscard]] Linked<void> set_time_limit(const JobRef& job, std::int64_t seconds) override;
  [[nodiscard]] Linked<void> set_admin_comment(const JobRef& job, const std::string& text) override;
  [[nodiscard]] Linked<void> resume_node(const std::string& node) override;

 private:
  /// A run on its nodes: while this is the same, so is what it holds.
  using HeldKey = std::tuple<RunKey, std::int64_t, std::string>;

  [[nodiscard]] Linked<std::string> say(std::vector<std::string> words);
  [[nodiscard]] Linked<void> command(std::vector<std::string> words);
  /// The words with the job behind them.
  [[nodiscard]] Linked<void> command_job(std::vector<std::string> words, const JobRef& job);
  [[nodiscard]] Linked<void> update_job(const JobRef& job, std::vector<std::string> changes);
  [[nodiscard]] Linked<void> choose_columns();
  [[nodiscard]] Linked<void> add_excluded(std::vector<Job>& jobs, const std::string& mark);
  /// False if some are not known yet.
  [[nodiscard]] bool add_details(std::vector<Job>& jobs);
  void read_details(const std::vector<std::pair<std::uint32_t, HeldKey>>& missing);

  TextLinkSettings settings_;
  std::optional<SqueueColumns> columns_{};
  std::optional<std::size_t> last_jobs_{};  // hash of the last answer that is complete
  std::vector<Node> last_nodes_{};
  std::map<HeldKey, std::vector<HeldNode>> held_{};
};

/// Whether a text is a job as `scontrol` takes it, "7" or "7_2": anything else is never passed on.
[[nodiscard]] bool is_job_ref(std::string_view text) noexcept;

}  // namespace berth::slurm
