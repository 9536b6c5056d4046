// What the end of an attempt means: from how its processes ended and what was wanted of it to what
// it is called, whether the job is over, and when it may be tried again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "exec/host.h"
#include "model/job_spec.h"
#include "store/record.h"

namespace berth {

/// What was under way when the attempt ended.
enum class Ending : std::uint8_t {
  ByItself,
  Cancel,   // its user or an operator wants it gone
  Preempt,  // the scheduler wants its devices
  Requeue,  // somebody asked for another try
  Kill,     // the policy ends it for good
};

struct Verdict {
  Outcome outcome{};
  bool is_final = true;
  Duration pause{};  // before the next try
  std::string why;
};

/// For people: "killed by signal 9", "exit code 1".
[[nodiscard]] std::string how_it_ended(const ExitRecord& exit);
/// For people: "held by ann: too long"; `why` may be empty.
[[nodiscard]] std::string by_whom(std::string_view what, std::string_view who,
                                  std::string_view why);
/// For people: a policy has ended the job, for this reason.
[[nodiscard]] std::string by_policy(std::string_view reason);
/// Whose fault a failure of a program was, as far as its exit tells. Its user's: out of its memory,
/// not found, or one of the exit codes of sysexits.h that blame the request. The machine's: one of
/// those that blame the system or say that another try may do. Anything else nobody knows.
[[nodiscard]] FailureKind failure_of(const ExitRecord& exit);

/// `failures`: attempts that failed on their own before this one. Exit code 0 means done, also in
/// the grace of a preemption: a program that only made way leaves with another (143 by custom). A
/// cancel, a requeue by name and a time limit that the program has heard of stand, whatever it says
/// on its way out; who was done before it heard is done.
[[nodiscard]] Verdict judge(const JobSpec& spec, Ending ending, const ExitRecord& exit,
                            std::int32_t failures);
/// Somebody has ended it for good, whatever else became of it; nothing: nobody has.
[[nodiscard]] std::optional<Verdict> judge_ended(Ending ending);
/// Its node or the power went away with it, or its shim was killed: `why` tells what is known.
/// `losses`: attempts that were lost in a row before this one; a job that is lost again and again
/// waits longer each time.
[[nodiscard]] Verdict judge_lost(const JobSpec& spec, Ending ending, std::string why,
                                 std::int32_t losses = 0);
/// It never began: its claim was taken by recovery.
[[nodiscard]] Verdict judge_void(Ending ending);
/// The host could not make it: `why` says why. Tried again after a pause, a few times.
[[nodiscard]] Verdict judge_unlaunched(Ending ending, const std::string& why,
                                       std::int32_t failures);

/// Between tries: doubled with each failure, from 1 s to 5 min.
[[nodiscard]] Duration pause_after(std::int32_t failures);

}  // namespace berth
