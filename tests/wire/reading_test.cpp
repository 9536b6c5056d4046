// What the command line makes of answers: full ones, of an older and of a newer scheduler, and of
// things that are no answers at all.
#include <nlohmann/json.hpp>

#include "client/answers.h"
#include "client/tables.h"
#include "why/why_json.h"
#include "wire/filled_service.h"
#include "wire/recorded.h"
#include "wire/view_fields.h"
#include "wire/writer.h"

namespace berth::test::reading_tests {
namespace {

using wire::Detail;
using wire::to_json;

const std::vector<std::string> kStrange{
    "",
    "{",
    "null",
    "5",
    "\"a\"",
    "[]",
    "{}",
    "[5]",
    "[null]",
    "[{}]",
    R"({"jobs":5,"nodes":5,"shares":5,"tokens":5,"results":5,"attempts":5})",
    R"({"jobs":[5,null,{}],"nodes":[{}],"shares":[{}],"tokens":[{}],"results":[{}],)"
    R"("attempts":[{}],"next":7,"total":"x"})"};

template <class Read>
std::string of_each(const std::vector<std::string>& bodies, Read read) {
  std::string all;
  for (const std::string& body : bodies) {
    const Result<std::string> text = read(body);
    all += "--- " + body + "\n" + (text ? *text : "failed: " + text.error().text()) + "\n";
  }
  return all;
}

std::vector<std::string> with_strange(std::vector<std::string> bodies) {
  bodies.insert(bodies.end(), kStrange.begin(), kStrange.end());
  return bodies;
}

TEST(Wire, WhatTheClientReads) {
  FilledService service;
  const Caller root{"root", 0, 0, Role::Admin};
  const client::TableStyle style{false, 0, 1'700'000'100};
  const std::string newer =
      R"({"jobs":[{"number":3,"state":"dreaming","mood":"fine","spec":{"name":"x","wings":2,)"
      R"("gpus":"many"},"where":[5,{"node":"n","devices":["x",1]}],"reason_code":"mercury",)"
      R"("training":5,"pace":{"rate":"fast","source":"tarot"},"started":null,"pid":"x",)"
      R"("array_indices":"x","attempts":1.5}],"next":"cursor","total":7})";
  std::string all = of_each(
      with_strange({to_json(*service.jobs(root, {}), Detail::WithoutScriptAndEnvironment),
                    to_json(*service.jobs(root, {}), Detail::Brief),
                    to_json(*service.history(root, {}), Detail::Brief), newer}),
      [&](const std::string& body) -> Result<std::string> {
        BERTH_TRY(const auto page, client::jobs_from(body, client::KeepJson::Yes));
        std::string text = client::queue_table(page.jobs, style) +
                           client::history_table(page.jobs, style) +
                           client::energy_table(page.jobs, {});
        for (const auto& job : page.jobs) {
          text += client::job_text(job, {}) + client::slurm_reason(job) + " " + job.slurm_id() +
                  " " + job.node_list() + " " + std::string(client::slurm_name(job.state)) + " " +
                  std::to_string(job.array_at_once) + " " + std::to_string(job.folded.size()) +
                  "\n" + job.json + "\n";
        }
        return text + page.next + " " + std::to_string(page.total);
      });
  all += of_each(with_strange({to_json(FilledService::full_job(12), Detail::Full)}),
                 [&](const std::string& body) -> Result<std::string> {
                   BERTH_TRY(const auto job, client::job_from(body));
                   return client::job_text(job, {});
                 });
  all += of_each(with_strange({to_json(AttemptList{*service.attempts(root, 12)})}),
                 [&](const std::string& body) -> Result<std::string> {
                   BERTH_TRY(const auto attempts, client::attempts_from(body));
                   BERTH_TRY(const auto job, client::job_from(R"({"number":12})"));
                   return client::job_text(job, attempts);
                 });
  all += of_each(with_strange({to_json(NodeList{service.nodes(root)})}),
                 [&](const std::string& body) -> Result<std::string> {
                   BERTH_TRY(const auto nodes, client::nodes_from(body));
                   return client::node_table(nodes, style) + client::energy_table({}, nodes);
                 });
  all += of_each(with_strange({to_json(ShareList{service.shares(root)})}),
                 [&](const std::string& body) -> Result<std::string> {
                   BERTH_TRY(const auto shares, client::shares_from(body));
                   return client::share_table(shares);
                 });
  all += of_each(
      with_strange({to_json(TokenList{*service.tokens(root)}),
                    R"({"tokens":[{"name":"n","role":"owner","expires":"soon","created":5}]})"}),
      [&](const std::string& body) -> Result<std::string> {
        BERTH_TRY(const auto tokens, client::tokens_from(body));
        return client::token_table(tokens);
      });
  all +=
      of_each(with_strange({to_json(service.cluster(root)),
                            R"({"policy":5,"settings":{"a":1,"b":[true],"c":"t"},"queues":[5]})"}),
              [&](const std::string& body) -> Result<std::string> {
                BERTH_TRY(const auto cluster, client::cluster_from(body));
                std::string text = cluster.policy + " " + cluster.version + " " + cluster.trouble +
                                   " " + std::to_string(cluster.gpus) + " " +
                                   std::to_string(cluster.pending) + " ";
                for (const auto& [key, value] : cluster.settings) text += key + "=" + value + ",";
                for (const auto& queue : cluster.queues)
                  text += queue.name + ":" + std::to_string(queue.max_time_limit) + ",";
                return text;
              });
  Why why;
  why.job = 12;
  why.state = LiveState::Blocked;
  why.summary = "because";
  why.reasons = {{.kind = "capacity",
                  .text = "4 GPUs wanted",
                  .numbers = {{"wanted", std::int64_t{4}}, {"rate", 0.5}, {"node", "n1"}},
                  .entities = {"job 3"},
                  .fix = "berth release 12",
                  .who = "operator",
                  .when = "until",
                  .until = 5,
                  .sole = true}};
  why.place = 3;
  why.of = 9;
  why.user = "ann";
  all += of_each(with_strange({berth::to_json(why),
                               R"({"job":1,"state":"dreaming","reasons":[5,{"numbers":{"a":[1]}}],)"
                               R"("age_seconds":7,"would_start":["x",5]})"}),
                 [&](const std::string& body) -> Result<std::string> {
                   BERTH_TRY(const auto answer, client::why_from(body));
                   return client::why_text(answer);
                 });
  all += of_each(with_strange({to_json(VerbResultList{*service.act(root, Verb::Hold, {}, "", 0)})}),
                 [&](const std::string& body) -> Result<std::string> {
                   BERTH_TRY(const auto results, client::results_from(body));
                   std::string text;
                   for (const auto& result : results)
                     text += std::to_string(result.job) + (result.is_done ? " done " : " not ") +
                             result.text + "\n";
                   return text;
                 });
  all += of_each(with_strange({to_json(*service.submit(root, {})), R"({"job":5})"}),
                 [&](const std::string& body) -> Result<std::string> {
                   BERTH_TRY(const auto reply, client::submit_from(body));
                   std::string text = std::to_string(reply.first) + " " +
                                      std::to_string(reply.count) +
                                      (reply.is_repeat ? " again" : " new");
                   for (const auto& note : reply.notes) text += " " + note;
                   return text;
                 });
  all += of_each(
      with_strange({to_json(root)}),
      [&](const std::string& body) -> Result<std::string> { return client::caller_from(body); });
  all +=
      of_each(with_strange({R"({"error":{"code":"x","messages":["a","b"]}})", R"({"error":5})",
                            R"({"error":{"messages":"a"}})", R"({"error":{"messages":[5,"b"]}})"}),
              [&](const std::string& body) -> Result<std::string> {
                std::string text;
                for (const auto& message : client::error_messages(body)) text += message + "|";
                return text;
              });
  expect_recorded("read.txt", all);
}

}  // namespace
}  // namespace berth::test::reading_tests
