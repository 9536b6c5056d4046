#include "slurm/refusal.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/split.h"
#include "slurm/numbers.h"

namespace berth::slurm {

namespace {

struct Saying {
  std::string_view words;
  Refusal refusal;
};
// The first that is found counts: a munge that is gone also denies access.
constexpr std::array kSayings{
    Saying{"Unable to contact slurm controller", Refusal::Unreachable},
    Saying{"Communication connection failure", Refusal::Unreachable},
    Saying{"Communication shutdown failure", Refusal::Unreachable},
    Saying{"Connection refused", Refusal::Unreachable},
    Saying{"Connection timed out", Refusal::Unreachable},
    Saying{"Connection reset", Refusal::Unreachable},
    Saying{"Socket timed out", Refusal::Unreachable},
    Saying{"Zero Bytes were transmitted", Refusal::Unreachable},
    Saying{"Message receive failure", Refusal::Unreachable},
    Saying{"Message send failure", Refusal::Unreachable},
    Saying{"Incomplete message", Refusal::Unreachable},
    Saying{"Unexpected message received", Refusal::Unreachable},
    Saying{"Protocol authentication error", Refusal::Unreachable},
    Saying{"authentication credential", Refusal::Unreachable},
    Saying{"Unable to contact munge", Refusal::Unreachable},
    Saying{"munge", Refusal::Unreachable},
    Saying{"Slurm backup controller in standby mode", Refusal::Unreachable},
    Saying{"Slurm controller is in standby", Refusal::Unreachable},
    Saying{"Resource temporarily unavailable", Refusal::Unreachable},
    Saying{"Transport endpoint is not connected", Refusal::Unreachable},
    Saying{"Invalid job id", Refusal::NoSuchJob},
    Saying{"Invalid job array", Refusal::NoSuchJob},
    Saying{"no longer pending", Refusal::WrongState},
    Saying{"is pending execution", Refusal::WrongState},
    Saying{"already completing or completed", Refusal::WrongState},
    Saying{"already finished", Refusal::WrongState},
    Saying{"is not suspended", Refusal::WrongState},
    Saying{"is already suspended", Refusal::WrongState},
    Saying{"Job is not running", Refusal::WrongState},
    Saying{"Job has not yet started", Refusal::WrongState},
    Saying{"presently disabled", Refusal::WrongState},
    Saying{"Transition of job", Refusal::WrongState},
    Saying{"Invalid user id", Refusal::NotAllowed},
    Saying{"ermission denied", Refusal::NotAllowed},
    Saying{"Operation not permitted", Refusal::NotAllowed},
    Saying{"Not responding due to private data", Refusal::NotAllowed},
};

}  // namespace

Refusal refusal_of(std::string_view words) noexcept {
  for (const Saying& saying : kSayings)
    if (words.find(saying.words) != std::string_view::npos) return saying.refusal;
  return Refusal::Other;
}

LinkError refused(std::string_view attempt, std::string_view words) {
  std::string_view first;
  for (const std::string_view line : split(words, '\n')) {
    if (line.empty()) continue;
    first = line;
    break;
  }
  return {refusal_of(words),
          fmt::format("{}: {}", attempt, first.empty() ? "no reason is told" : shortened(first))};
}

}  // namespace berth::slurm
