// The link by a program that is compiled against the site's own libslurm (link/slurm): one request
// places and releases, and a poll that finds nothing new costs next to nothing. What libslurm does
// not tell a program (topology, settings, reservations) is asked of the text commands.
//
// The program is started when it is first needed and again when it has died, after a pause that
// grows with each death that follows the last too soon. A reading whose program died is asked once
// more; a command never is, for it may have been carried out.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/link_lines.h"
#include "slurm/process.h"
#include "slurm/text_link.h"

namespace berth::slurm {

struct ProgramLinkSettings {
  std::vector<std::string> command;  // the program, or what runs it and the program
  TextLinkSettings text{};
  std::chrono::milliseconds deadline{30'000};
  std::chrono::milliseconds shortest_pause{500}, longest_pause{30'000};
  /// Everything is read anew at least so often: a clock of slurmctld that was set back would
  /// otherwise make it say "nothing new" for as long.
  std::chrono::milliseconds full_reading{60'000};
};

class ProgramLink final : public Link {
 public:
  explicit ProgramLink(ProgramLinkSettings settings)
      : settings_(std::move(settings)), text_(settings_.text) {}

  /// Starts it, if it does not run: what it says of itself, "24.11.5".
  [[nodiscard]] Linked<std::string> start();

  [[nodiscard]] Linked<Version> version() override { return text_.version(); }
  [[nodiscard]] Linked<std::optional<std::vector<Job>>> jobs() override;
  [[nodiscard]] Linked<std::optional<std::vector<Node>>> nodes() override;
  [[nodiscard]] Linked<std::vector<Partition>> partitions() override { return text_.partitions(); }
  [[nodiscard]] Linked<std::vector<Switch>> topology() override { return text_.topology(); }
  [[nodiscard]] Linked<std::vector<Reservation>> reservations() override {
    return text_.reservations();
  }
  [[nodiscard]] Linked<Config> config() override { return text_.config(); }

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
  using Clock = std::chrono::steady_clock;
  using OnRow = std::function<Result<void>(const Row&)>;
  struct Since {  // when the last answer was made, by slurmctld's clock, and the last full one
    std::int64_t moment = 0;
    std::optional<Clock::time_point> full{};
  };
  struct Answer {
    bool is_same = false;
    std::int64_t moment = 0;
  };

  [[nodiscard]] Linked<void> ready();
  [[nodiscard]] Linked<void> greet();
  /// One request and its answer, row by row.
  [[nodiscard]] Linked<void> exchange(const std::vector<std::string_view>& request,
                                      const OnRow& on_row);
  [[nodiscard]] Linked<void> send(std::string_view line, Clock::time_point deadline);
  [[nodiscard]] Linked<void> receive(std::string_view number, std::string_view attempt,
                                     const OnRow& on_row, Clock::time_point deadline);
  [[nodiscard]] Linked<void> more(Clock::time_point deadline);
  [[nodiscard]] tl::unexpected<LinkError> lost(std::string_view what);
  /// Asks again if the program has died meanwhile.
  [[nodiscard]] Linked<Answer> read(std::string_view verb, Since& since,
                                    const std::function<void()>& begin, const OnRow& on_row);
  [[nodiscard]] Linked<void> command(std::string_view verb, const JobRef& job,
                                     const std::vector<std::string_view>& more = {});

  ProgramLinkSettings settings_;
  TextLink text_;
  Child child_{};
  std::string compiled_for_{};
  std::string complaints_{};  // the end of what it has said on stderr
  std::string unread_{};
  std::size_t scanned_ = 0;  // of unread_: no line ends before
  std::uint64_t requests_ = 0, deaths_ = 0;
  std::chrono::milliseconds pause_{0};
  Clock::time_point not_before_{};
  Since jobs_since_{}, nodes_since_{};
};

}  // namespace berth::slurm
