#include <fmt/format.h>

#include "apps/commands.h"
#include "model/cluster.h"
#include "trace/generator.h"
#include "trace/writer.h"

namespace berth {

namespace {

Result<GenerateOptions> wishes_of(const GenerateCommand& command) {
  GenerateOptions wishes;
  wishes.like = command.like;
  wishes.jobs = command.jobs;
  wishes.seed = command.seed;
  wishes.burst = command.burst;
  wishes.diurnal = command.diurnal;
  wishes.models = command.models;
  wishes.deadlines = command.deadlines;
  wishes.users = command.users;
  if (!command.cluster.empty()) {
    BERTH_TRY(const Cluster cluster, load_cluster(command.cluster));
    wishes.total_gpus = static_cast<double>(cluster.total_gpus());
    wishes.gpus_per_node = cluster.largest_node();
  }
  if (command.load > 0) {
    if (command.cluster.empty())
      return fail("--load: load of which cluster? Give --cluster, as in --cluster 16x4");
    wishes.load = command.load;
  }
  return wishes;
}

}  // namespace

Exit execute(const GenerateCommand& command) {
  if (command.out.empty()) {
    return complain(Exit::Misuse,
                    "no -o FILE: where to? (- is standard output) For example:\n"
                    "  berth generate --like philly --jobs 2000 --cluster 16x4 --load 0.9 --seed 1 "
                    "-o trace.csv");
  }
  const auto wishes = wishes_of(command);
  if (!wishes) return complain(Exit::Misuse, wishes.error());
  const auto trace = generate_trace(*wishes);
  if (!trace) return complain(Exit::Misuse, trace.error());
  if (command.out == "-") return write_stdout(trace_to_csv(*trace));
  if (const auto written = write_trace_csv(*trace, command.out); !written)
    return complain(Exit::Failure, written.error());
  print_note(fmt::format("wrote {} jobs to {}", trace->jobs.size(), command.out));
  return Exit::Success;
}

}  // namespace berth
