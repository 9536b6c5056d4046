// `berth slurm capture`: a Slurm's nodes as a cluster file, its past as a trace.
#include <array>

#include "apps/slurm.h"

namespace berth {

namespace {

using client::OptionSpec;
using client::Takes;

constexpr std::array kOptions{
    OptionSpec{"out", 'o', Takes::Value, "DIR", "the folder to write (required)", "Output"},
    OptionSpec{"days", 0, Takes::Value, "N", "how far back (default 30)", "Input"},
};

Exit run(const client::Parsed&) { return complain(Exit::Failure, "slurm capture: not yet"); }

}  // namespace

const SlurmVerb kSlurmCapture{
    .name = "capture",
    .summary = "write a Slurm's nodes as a cluster file and its past as a trace",
    .examples = "berth slurm capture -o here --days 30",
    .options = kOptions,
    .run = run,
};

}  // namespace berth
