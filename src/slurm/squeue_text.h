// Jobs by `squeue -O`. Users write names and comments freely, and a name may hold any separator that
// could be thought of: so what users write is set off by a mark that is drawn anew for every
// reading, which nobody can have written before. Then no name can pass for another job.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "slurm/facts.h"

namespace berth::slurm {

/// What squeue of this version can tell. Exclusive: that a job wants its nodes to itself, for where
/// it has that column OverSubscribe says NO of every job that does not share CPUs.
struct SqueueColumns {
  bool has_exclusive = false;
  bool has_excluded_nodes = true;
};
/// By what `squeue --helpFormat` printed; 22.05 does not know that option, nor these columns.
[[nodiscard]] SqueueColumns columns_by_help(std::string_view help);
inline constexpr SqueueColumns kOldColumns{.has_exclusive = false, .has_excluded_nodes = false};

struct SqueueForm {
  std::string mark;  // letters and digits, hard to guess
  SqueueColumns columns{};
};
/// The argument of -O.
[[nodiscard]] std::string squeue_format(const SqueueForm& form);

/// What `squeue -h -a -t all -O squeue_format(form)` printed, run with TZ=UTC and
/// SLURM_BITSTR_LEN=0. A reading that is not whole is an error: a job that is missing in it would
/// look as if it had ended.
///
/// squeue does not tell what a COMPLETING job will have been: it is Running and `completing`.
[[nodiscard]] Result<std::vector<Job>> parse_squeue(std::string_view text, const SqueueForm& form);

/// Excluded nodes where -O has no column of them: the argument of -o, and what it printed. Only jobs
/// that exclude any.
[[nodiscard]] std::string excluded_format(std::string_view mark);
[[nodiscard]] Result<std::map<std::uint32_t, std::vector<std::string>>> parse_excluded(
    std::string_view text, std::string_view mark);

/// "RUNNING", "COMPLETING", "CONFIGURING" as phase and marks of a job.
void set_phase(Job& job, std::string_view word);
/// A status as wait() tells it, as exit code and signal.
void set_exit_status(Job& job, std::uint32_t status);

}  // namespace berth::slurm
