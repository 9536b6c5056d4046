// What Slurm has written down: jobs that are over, from its accounting, and limits of associations
// and QOS with what is used of them. Asked only when somebody wants to know, by the commands of
// Slurm; safe from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advise/limits.h"
#include "base/result.h"
#include "slurm/facts.h"

namespace berth::advise {

/// Jobs that have ended in [from, until), Unix seconds.
struct PastSpan {
  std::int64_t from = 0, until = 0;
  std::optional<std::string> user{}, account{}, partition{}, name{};
  std::vector<std::string> jobs{};  // "7", "7_3"; empty: all
};

class Books {
 public:
  virtual ~Books() = default;
  /// In no order; of several runs of a job the last.
  [[nodiscard]] virtual Result<std::vector<slurm::Job>> ended(const PastSpan& span) = 0;
  /// As `scontrol show assoc_mgr` writes it.
  [[nodiscard]] virtual Result<std::string> limits(const LimitHolder& holder) = 0;
};

class CommandBooks final : public Books {
 public:
  /// `commands`: the folder of Slurm's commands; empty: on PATH.
  explicit CommandBooks(std::string commands) : commands_(std::move(commands)) {}
  [[nodiscard]] Result<std::vector<slurm::Job>> ended(const PastSpan& span) override;
  [[nodiscard]] Result<std::string> limits(const LimitHolder& holder) override;

 private:
  [[nodiscard]] Result<std::string> ask(std::vector<std::string> words);
  std::string commands_;
};

/// The columns asked of sacct, in this order; the last is what people write freely.
[[nodiscard]] std::string_view sacct_columns() noexcept;
/// Lines of sacct with these columns, joined by `separator`; lines that are none are left out, and
/// jobs that are not over.
[[nodiscard]] std::vector<slurm::Job> read_sacct(std::string_view text, std::string_view separator);

}  // namespace berth::advise
