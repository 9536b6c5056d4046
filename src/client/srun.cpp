// srun: inside a job it makes a step of it; outside it asks for a job to make the step in.
#include <cstdlib>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "client/interactive/interactive.h"
#include "client/slurm_names.h"
#include "client/srun_options.h"
#include "client/submit_command.h"
#include "model/output_pattern.h"
#include "step/book.h"
#include "step/grant.h"

namespace berth::client {

namespace {

/// Slurm's words for a step that its job cannot hold; scripts look for them.
std::string_view slurm_words(StepRefusal::Kind kind) {
  switch (kind) {
    case StepRefusal::Kind::Devices: return "Invalid generic resource (gres) specification";
    case StepRefusal::Kind::Nodes: return "Requested node configuration is not available";
    case StepRefusal::Kind::Cores: break;
  }
  return "More processors requested than permitted";
}

/// A step, as soon as others have left what it needs.
Result<StepEntry> begin_step(const SrunCall& call, const JobWorld& world, const Console& console) {
  const StepBook book(world.steps);
  const StepWish wish = wish_of(call.request);
  bool has_said = false;
  for (auto pause = std::chrono::milliseconds(20);;
       pause = std::min(pause * 2, std::chrono::milliseconds(500))) {
    auto begun = book.try_begin(wish, world.grant);
    if (!begun) return tl::unexpected<Error>(std::move(begun).error());
    if (*begun) {
      if (has_said && !call.quiet)
        console.note(fmt::format("Step created for StepId={}.{}", world.job, (*begun)->view().id));
      return *std::move(*begun);
    }
    if (call.immediate)
      return fail(
          fmt::format("Unable to create step for job {}: Requested nodes are busy", world.job));
    if (!has_said && !call.quiet)
      console.note(fmt::format(
          "Job {} step creation temporarily disabled, retrying (Requested nodes are busy)",
          world.job));
    has_said = true;
    std::this_thread::sleep_for(pause);
  }
}

Result<void> name_files(SrunCall& call, const JobWorld& world, const StepView& step,
                        const Environment& environment) {
  PatternContext context;
  context.job = static_cast<JobNumber>(std::strtoull(world.job.c_str(), nullptr, 10));
  context.name = world.job_name;
  context.node = world.node;
  context.step = step.id;
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string{} : found->second;
  };
  context.user = value("SLURM_JOB_USER");
  context.array =
      static_cast<JobNumber>(std::strtoull(value("SLURM_ARRAY_JOB_ID").c_str(), nullptr, 10));
  context.array_index =
      static_cast<std::int32_t>(std::strtol(value("SLURM_ARRAY_TASK_ID").c_str(), nullptr, 10));
  for (const auto& [given, path] : {std::pair{&call.input, &call.settings.input},
                                    {&call.output, &call.settings.output},
                                    {&call.error, &call.settings.error}}) {
    if (given->empty()) continue;
    BERTH_TRY(*path, expand_pattern(*given, context));
  }
  return {};
}

int run_inside(SrunCall call, const JobWorld& world, const Environment& environment,
               Console& console) {
  if (!call.multi_prog.empty()) {
    const auto text = read_file(call.multi_prog, {.max_bytes = std::size_t{1} << 20U});
    if (!text) return console.complain(kFailure, text.error());
    auto programs = parse_multi_prog(*text, call.request.tasks);
    if (!programs)
      return console.complain(
          kFailure, fmt::format("error: {}: {}", call.multi_prog, programs.error().text()));
    call.request.programs = *std::move(programs);
  }
  for (const std::string& note : call.notes) console.note(note);
  auto entry = begin_step(call, world, console);
  if (!entry) {
    if (const auto refused = refusal_of(wish_of(call.request), world.grant))
      console.note(fmt::format("error: Unable to create step for job {}: {}", world.job,
                               slurm_words(refused->kind)));
    return console.complain(kFailure, entry.error());
  }
  StepView ended = entry->view();
  RunSettings& settings = call.settings;
  settings.step = fmt::format("{}.{}", world.job, ended.id);
  settings.node = world.node;
  settings.shim = world.shim;
  settings.say = [&](const std::string& line) { console.note(line); };
  Result<StepEnd> end = fail("");
  if (const auto named = name_files(call, world, ended, environment); !named) {
    end = tl::unexpected<Error>(named.error());
  } else {
    StepRunner runner(plan_tasks(call.request, ended, world, environment), settings);
    end = runner.run();
  }
  ended.state = end ? end->state : StepState::Failed;
  ended.exit_code = end ? end->exit_code : 1;
  if (end) {
    ended.signal = end->signal;
    ended.cpu_seconds = end->cpu_seconds;
    ended.max_rss_kib = end->max_rss_kib;
  }
  // Who cannot write it down has run its tasks nevertheless: their end counts.
  if (const auto written = entry->finish(ended); !written) console.note(written.error().text());
  if (!end) return console.complain(kFailure, end.error());
  return end->status;
}

}  // namespace

int run_srun(std::span<const std::string> words, Console& console) {
  if (std::getenv(kStepsVariable) == nullptr) return run_srun_outside(words, console);
  const Parsed parsed = parse_options(srun_options(), words, OperandOrder::Leading);
  if (const auto code = complaint(parsed, console)) return *code;
  if (parsed.has("help")) {
    console.put(slurm_help("srun [OPTIONS] COMMAND [ARGS…]", srun_options()));
    return console.done();
  }
  if (parsed.has("usage")) {
    console.put(slurm_usage("srun", "COMMAND [ARGS…]", srun_options()));
    return console.done();
  }
  if (parsed.has("version")) return console.put("berth " BERTH_VERSION "\n"), console.done();
  const auto context = process_context();
  if (!context) return console.complain(kFailure, context.error());
  auto world = world_of(context->environment);
  const bool is_other = parsed.has("jobid") && world && parsed.value("jobid") != world->job;
  if (!world || is_other) return run_srun_outside(words, console);
  auto grant = read_grant(world->steps);
  if (!grant) return console.complain(kFailure, grant.error());
  world->grant = *std::move(grant);
  auto call = srun_call(with_variables(parsed, context->environment), *world);
  if (!call) return console.complain(kMisuse, call.error());
  return run_inside(*std::move(call), *world, context->environment, console);
}

}  // namespace berth::client
