// What answers each route of the table (api/route.cpp). Who may do what is the service's decision;
// here a request becomes a call of the service and its answer JSON.
#pragma once

#include "api/api.h"

namespace berth::api {

// job_handlers.cpp
void submit_job(const Call& call, Reply reply);
[[nodiscard]] Answered test_job(const Call& call);
[[nodiscard]] Answered list_jobs(const Call& call);
[[nodiscard]] Answered show_job(const Call& call);
[[nodiscard]] Answered change_job(const Call& call);
[[nodiscard]] Answered cancel_job(const Call& call);  // DELETE
[[nodiscard]] Answered act_on_job(const Call& call);  // the verb is the last part of the path
[[nodiscard]] Answered act_on_jobs(const Call& call);
[[nodiscard]] Answered join_job(const Call& call);
[[nodiscard]] Answered list_attempts(const Call& call);
[[nodiscard]] Answered show_steps(const Call& call);
[[nodiscard]] Answered list_steps(const Call& call);
[[nodiscard]] Answered explain_job(const Call& call);
[[nodiscard]] Answered list_history(const Call& call);

// stream_handlers.cpp
[[nodiscard]] Answered read_output(const Call& call);
[[nodiscard]] Answered read_events(const Call& call);

// cluster_handlers.cpp
[[nodiscard]] Answered show_cluster(const Call& call);
[[nodiscard]] Answered list_nodes(const Call& call);
[[nodiscard]] Answered set_node(const Call& call);  // the state is the last part of the path
[[nodiscard]] Answered show_policy(const Call& call);
[[nodiscard]] Answered set_policy(const Call& call);
[[nodiscard]] Answered list_shares(const Call& call);
[[nodiscard]] Answered set_share(const Call& call);
[[nodiscard]] Answered list_tokens(const Call& call);
[[nodiscard]] Answered make_token(const Call& call);
[[nodiscard]] Answered revoke_token(const Call& call);
[[nodiscard]] Answered show_caller(const Call& call);
[[nodiscard]] Answered show_metrics(const Call& call);
[[nodiscard]] Answered show_profiles(const Call& call);
[[nodiscard]] Answered show_health(const Call& call);
[[nodiscard]] Answered show_openapi(const Call& call);

// Small things they share.
[[nodiscard]] inline Answered json_answer(std::string body, int status = 200) {
  Answered answered;
  answered.response.status = status;
  answered.response.body = std::move(body);
  return answered;
}
[[nodiscard]] inline Answered error_answer(int status, const std::vector<std::string>& messages) {
  return Answered{error_response(status, messages), nullptr};
}
[[nodiscard]] inline Answered fault_answer(const Fault& fault) {
  return Answered{fault_response(fault), nullptr};
}
/// The number in the path, or the answer that there is no such job.
[[nodiscard]] tl::expected<JobNumber, Fault> job_of(const Call& call);
/// Scripts, environments and output are for the job's owner and for operators.
[[nodiscard]] bool may_look_inside(const Caller& caller, const JobView& job);

}  // namespace berth::api
