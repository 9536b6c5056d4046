// Jobs by `squeue -O`. Users write names and comments freely, and a name may hold any separator that
// could be thought of: so what users write is set off by a mark that is drawn anew for every
// reading, which nobody can have written before. Then no name can pass for another job.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "slurm/facts.h"

namespace berth::slurm {

/// In which column squeue tells that a job wants its nodes to itself: Exclusive where it has that,
/// for there OverSubscribe says NO of every job that does not share CPUs.
enum class AloneColumn : std::uint8_t { OverSubscribe, Exclusive };
/// By what `squeue --helpFormat` printed.
[[nodiscard]] AloneColumn alone_column(std::string_view help);

struct SqueueForm {
  std::string mark;  // letters and digits, hard to guess
  AloneColumn alone = AloneColumn::OverSubscribe;
};
/// The argument of -O.
[[nodiscard]] std::string squeue_format(const SqueueForm& form);

/// What `squeue -h -a -t all -O squeue_format(form)` printed, run with TZ=UTC and
/// SLURM_BITSTR_LEN=0. A reading that is not whole is an error: a job that is missing in it would
/// look as if it had ended.
///
/// squeue does not tell what a COMPLETING job will have been: it is Running and `completing`.
[[nodiscard]] Result<std::vector<Job>> parse_squeue(std::string_view text, const SqueueForm& form);

/// "RUNNING", "COMPLETING", "CONFIGURING" as phase and marks of a job.
void set_phase(Job& job, std::string_view word);

}  // namespace berth::slurm
