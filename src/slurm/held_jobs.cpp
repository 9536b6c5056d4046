#include "slurm/held_jobs.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "slurm/setup_state.h"

namespace berth::slurm {

namespace {

/// 7, or since 23.02 {"set": true, "infinite": false, "number": 7}.
std::int64_t number_in(const nlohmann::json& job, const char* key) {
  const auto found = job.find(key);
  if (found == job.end()) return 0;
  if (found->is_number()) return found->get<std::int64_t>();
  if (!found->is_object() || !found->value("set", false)) return 0;
  return found->value("number", std::int64_t{0});
}

std::string text_in(const nlohmann::json& job, const char* key) {
  const auto found = job.find(key);
  return found != job.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// "PENDING", or since 23.02 ["PENDING"].
bool is_waiting(const nlohmann::json& job) {
  const auto state = job.find("job_state");
  if (state == job.end()) return false;
  if (state->is_string()) return state->get<std::string>() == "PENDING";
  return state->is_array() && std::ranges::any_of(*state, [](const nlohmann::json& word) {
           return word.is_string() && word.get<std::string>() == "PENDING";
         });
}

std::string ref_of(std::uint32_t id, const nlohmann::json& job) {
  const std::string tasks = text_in(job, "array_task_string");
  const std::int64_t array = number_in(job, "array_job_id");
  if (array == 0 || tasks.empty() || tasks.find("...") != std::string::npos)
    return fmt::format("{}", id);
  return fmt::format("{}_[{}]", array, tasks);
}

WaitingJob waiting_job_of(const nlohmann::json& job) {
  WaitingJob waiting;
  waiting.id = static_cast<std::uint32_t>(number_in(job, "job_id"));
  waiting.ref = ref_of(waiting.id, job);
  waiting.name = text_in(job, "name");
  waiting.user = text_in(job, "user_name");
  waiting.qos = text_in(job, "qos");
  waiting.reason = text_in(job, "state_reason");
  waiting.admin_comment = text_in(job, "admin_comment");
  waiting.required_nodes = text_in(job, "required_nodes");
  waiting.is_held = number_in(job, "priority") == 0;
  waiting.eligible = number_in(job, "eligible_time");
  waiting.mark = hold_mark_of(waiting.admin_comment);
  return waiting;
}

}  // namespace

Holder holder_of(const WaitingJob& job) {
  if (job.mark && job.eligible >= kUserHold) return Holder::User;
  if (!job.is_held) return Holder::Nobody;
  if (job.reason == "JobHeldAdmin") return Holder::Admin;
  // Users cannot choose that QOS: what is held in it was requeued by Berth.
  return job.mark || job.qos == kBerthQos ? Holder::Berth : Holder::User;
}

Result<std::vector<WaitingJob>> waiting_jobs_of(const std::string& json) {
  try {  // the JSON library throws
    std::vector<WaitingJob> jobs;
    const auto answer = nlohmann::json::parse(json);
    for (const auto& job : answer.at("jobs")) {
      if (is_waiting(job)) jobs.push_back(waiting_job_of(job));
    }
    std::ranges::sort(jobs, {}, &WaitingJob::id);
    return jobs;
  } catch (const std::exception& problem) {
    return fail(fmt::format("`squeue --json`: {}", problem.what()));
  }
}

Result<std::vector<WaitingJob>> waiting_jobs(SlurmCommands& commands) {
  BERTH_TRY(const std::string json, output_of(commands, {"squeue", "--json", "--states=PENDING"}));
  return waiting_jobs_of(json);
}

}  // namespace berth::slurm
