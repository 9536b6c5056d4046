#include "client/slurm/sacct_json.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace berth::client::slurm {

namespace {

constexpr std::int64_t kSecond = 1'000'000;

Json split_seconds(double seconds) {
  const double whole = std::floor(std::max(0.0, seconds));
  return {{"seconds", static_cast<std::int64_t>(whole)},
          {"microseconds", static_cast<std::int64_t>((std::max(0.0, seconds) - whole) * 1e6)}};
}

Json step_json(const AccountRow& row, const AccountFacts& facts) {
  const StepView& step = *row.step;
  Resources has = allocated(row.job, facts.types);
  if (step.cpus > 0) has.cpus = step.cpus;
  if (step.id != kBatchStep) has.gpus = static_cast<std::int32_t>(step.devices.size());
  Json names = Json::array();
  for (const HeldDevices& held : row.job.where) names.push_back(held.node);
  Json memory = Json::array();
  if (step.max_rss_kib > 0)
    memory.push_back(
        {{"type", "mem"}, {"name", ""}, {"id", 2}, {"count", step.max_rss_kib * 1'024}});
  return {
      {"time",
       {{"elapsed", static_cast<std::int64_t>(step_seconds(step, facts.now))},
        {"end", set_moment(step.ended)},
        {"start", set_moment(step.begun)},
        {"suspended", 0},
        {"total", split_seconds(step.cpu_seconds)}}},
      {"exit_code", exit_code_json(accounted_exit(step).code, accounted_exit(step).signal)},
      {"nodes", {{"count", row.job.where.size()}, {"range", nodes_of(row.job)}, {"list", names}}},
      {"tasks", {{"count", step.tasks}}},
      {"pid", step.pid > 0 ? fmt::to_string(step.pid) : ""},
      {"kill_request_user", ""},
      {"state", Json::array({state_word(step.state)})},
      {"step", {{"id", fmt::format("{}.{}", row.job.number, step.id)}, {"name", step.name}}},
      {"tres", {{"requested", {{"max", memory}}}, {"allocated", tres_json(has)}}}};
}

Json job_times(const JobRow& job, const AccountRow& row, const AccountFacts& facts) {
  const std::int64_t limit = job.spec->time_limit;
  const std::int64_t until = job.started > 0 ? job.started : facts.now * kSecond;
  return {{"elapsed", static_cast<std::int64_t>(elapsed_of(job, facts.now))},
          {"eligible", eligible_of(job) / kSecond},
          {"end", job.ended / kSecond},
          {"planned", set_number(std::max<std::int64_t>(0, until - job.submitted) / kSecond)},
          {"start", start_of(job) / kSecond},
          {"submission", job.submitted / kSecond},
          {"suspended", 0},
          {"limit", limit > 0 ? set_number((limit + 59) / 60) : infinite_number()},
          {"total", split_seconds(row.cpu_seconds)}};
}

Json job_record(const AccountRow& row, const AccountFacts& facts) {
  const JobRow& job = row.job;
  const JobSpec& spec = *job.spec;
  const Account account = account_of(spec.user);
  Json array = {{"job_id", job.array},
                {"limits", {{"max", {{"running", {{"tasks", job.array_at_once}}}}}}},
                {"task_id",
                 job.array != 0 && row.indices.empty() ? set_number(job.array_index) : no_number()},
                {"task", row.indices}};
  Json required = {
      {"CPUs", requested(job).cpus},
      {"memory_per_cpu", no_number()},
      {"memory_per_node", spec.memory_mib > 0 ? set_number(spec.memory_mib) : no_number()}};
  const std::string state = accounted_state(job);
  const AccountedExit exit = accounted_exit(job);
  const auto by = state.find(" by ");
  return {
      {"account", account_name(job)},
      {"comment", {{"administrator", ""}, {"job", spec.comment}, {"system", ""}}},
      {"allocation_nodes", job.where.size()},
      {"array", array},
      {"association",
       {{"account", account_name(job)},
        {"cluster", facts.cluster},
        {"partition", ""},
        {"user", spec.user},
        {"id", 0}}},
      {"cluster", facts.cluster},
      {"derived_exit_code", exit_code_json(exit.code, 0)},
      {"time", job_times(job, row, facts)},
      {"exit_code", exit_code_json(exit.code, exit.signal)},
      {"flags", Json::array()},
      {"group", account.group},
      {"job_id", job.number},
      {"name", spec.name},
      {"nodes", is_waiting(job.state) ? "None assigned" : nodes_of(job)},
      {"partition", partition_of(job)},
      {"hold", job.state == LiveState::Held},
      {"priority", set_number(spec.priority)},
      {"qos", kQos},
      {"required", required},
      {"kill_request_user", by == std::string::npos ? "" : state.substr(by + 4)},
      {"restart_cnt", std::max(0, job.attempts - 1)},
      {"script", ""},
      {"stdin_expanded", spec.input.empty() ? "/dev/null" : spec.input},
      {"stdout_expanded", job.output},
      {"stderr_expanded", job.error},
      {"state", {{"current", Json::array({slurm_name(job.state)})}, {"reason", slurm_reason(job)}}},
      {"steps", Json::array()},
      {"submit_line", command_of(job)},
      {"tres",
       {{"allocated", tres_json(allocated(job, facts.types))},
        {"requested", tres_json(requested(job))}}},
      {"user", spec.user},
      {"wckey", {{"wckey", ""}, {"flags", Json::array()}}},
      {"working_directory", spec.workdir}};
}

}  // namespace

Json account_json(const std::vector<AccountRow>& rows, const AccountFacts& facts) {
  Json jobs = Json::array();
  for (const AccountRow& row : rows) {
    if (row.attempt != nullptr) continue;
    if (row.step == nullptr || jobs.empty() || jobs.back()["job_id"] != row.job.number)
      jobs.push_back(job_record(row, facts));
    if (row.step != nullptr) jobs.back()["steps"].push_back(step_json(row, facts));
  }
  return jobs;
}

}  // namespace berth::client::slurm
