// What events, explanations and training messages look like on the wire, byte for byte.
#include "daemon/service_events.h"
#include "training/message.h"
#include "why/why_json.h"
#include "wire/filled_service.h"
#include "wire/recorded.h"

namespace berth::test {
namespace {

TEST(Wire, Events) {
  std::string all;
  const auto add = [&](const ServiceEvent& event) {
    all +=
        event.kind + " " + std::to_string(event.job) + " " + event.user + " " + event.json + "\n";
  };
  Record record;
  record.wall = 1'700'000'000'000'009;
  record.body = WishRecord{.job = 12, .wish = Wish::Cancel, .by = "ann", .why = {}};
  for (JobView job : FilledService::all_jobs()) {
    add(job_event(job, record));
    job.state = LiveState::TimedOut;
    add(job_event(job, record));
    job.reason = "bytes \xff that are no text";
    add(job_event(job, record));
  }
  for (const char* key : {"node/n1", "token/ci", "policy", "quota/group/ml"})
    add(setting_event({.key = key, .value = R"({"a":"<b>"})", .by = "root"}));
  expect_recorded("events.txt", all);
}

TEST(Wire, Why) {
  Why why{.job = 12,
          .state = LiveState::Blocked,
          .summary = kOddText,
          .reasons = {},
          .would_start = {"with 2 GPUs", kOddText},
          .place = 3,
          .of = 9,
          .user = "ann",
          .is_yours = true};
  WhyReason reason{.kind = "capacity", .text = kOddText};
  reason.numbers = {
      {"wanted", std::int64_t{4}}, {"rate", 0.12345},  {"whole", 3.0},
      {"node", std::string("n1")}, {"large", 1e18},    {"below", -2.5},
      {"a", std::int64_t{-7}},     {"tiny", -0.00001}, {"big", std::int64_t{1} << 60}};
  reason.entities = {"job 3", "n1"};
  reason.fix = "berth release 12";
  reason.who = "operator";
  reason.when = "until";
  reason.until = 1'700'000'000'000'000;
  reason.sole = true;
  why.reasons = {reason, {.kind = "order", .text = "later"}};
  std::string all = to_json(why) + "\n" + to_json(Why{}) + "\n";
  const auto back = why_from_json(to_json(why));
  ASSERT_TRUE(back);
  all += to_json(*back) + "\n";
  EXPECT_EQ(back->reasons[0].until, reason.until);
  EXPECT_EQ(back->state, LiveState::Blocked);
  for (const char* bad : {"", "{", "[]", "5", "{}", R"({"job":1})"})
    EXPECT_FALSE(why_from_json(bad)) << bad;
  expect_recorded("why.txt", all);
}

// Commands, requests, the journal and the log speak of the same thing by the same word.
TEST(Wire, VerbsAreTheWordsOfTheJournal) {
  for (const auto& [verb, word] : wire::Names<Verb>::kAll)
    EXPECT_EQ(wish_from(word).has_value(), verb != Verb::Signal) << word;
  EXPECT_EQ(wish_from("cancel"), Wish::Cancel);
  EXPECT_EQ(done_word(Wish::Cancel), to_string(Outcome::Cancelled));
  EXPECT_EQ(to_string(LiveState::Cancelled), to_string(Outcome::Cancelled));
}

TEST(Wire, TrainingMessages) {
  std::string all;
  all += welcome_line(12);
  all += terms_line({});
  all += terms_line({.sub_steps = 4, .cores_milli = 1'500});
  Terms terms;
  terms.batch = 64;
  terms.memory_limit_mib = 300;
  all += terms_line(terms);
  all += checkpoint_line(30, AfterCheckpoint::GoOn);
  all += checkpoint_line(2.5, AfterCheckpoint::Stop);
  all += resize_line(8);
  all += resize_line(ResizeAsk{.id = 3, .devices = {0, 1}, .cores = {}, .deadline_seconds = 10});
  all += resize_line(ResizeAsk{.id = 4, .devices = {2}, .cores = {5, 6}, .deadline_seconds = 0.5});
  all += error_line(kOddText);
  all += error_line("bytes \xff that are no text");
  const auto add = [&](const std::string& line) {
    const auto message = parse_from_code(line);
    all += line + " -> " +
           (message ? "message " + std::to_string(message->index()) : message.error().text()) +
           "\n";
  };
  for (const char* type : {"hello", "report", "checkpointed", "resized", "phase", "bye"}) {
    const std::string begin = std::string(R"({"type":")") + type + "\"";
    for (const char* rest : {"",
                             R"("v":1,"job":2,"token":"t","rank":3,"sdk":"s","resizes":true)",
                             R"("v":-1)",
                             R"("v":1)",
                             R"("v":1,"job":9007199254740993)",
                             R"("v":1.0,"job":1)",
                             R"("v":1,"job":1,"token":5)",
                             R"("v":1,"job":1,"rank":2147483648)",
                             R"("v":1,"job":1,"resizes":1)",
                             R"("v":null,"job":null)",
                             R"("v":1,"job":1,"token":null)",
                             R"("iteration":5)",
                             R"("iteration":null)",
                             R"("iteration":"5")",
                             R"("iteration":5,"epoch":-1)",
                             R"("iteration":5,"epoch":"x","loss":"y")",
                             R"("iteration":5,"batch":-1)",
                             R"("iteration":5,"batch":1.5)",
                             R"("iteration":5,"samples":-1)",
                             R"("iteration":5,"sub_steps":0)",
                             R"("iteration":5,"sub_steps":"2")",
                             R"("iteration":5,"noise_scale":-1)",
                             R"("iteration":5,"metrics":{"a":1,"b":"x","c":null})",
                             R"("iteration":5,"metrics":5)",
                             R"("iteration":5,"path":"/x")",
                             R"("iteration":-5,"path":"/x")",
                             R"("path":5)",
                             R"("id":5,"done":true)",
                             R"("id":5,"done":"yes")",
                             R"("id":-5)",
                             R"("done":true)",
                             R"("phase":"training")",
                             R"("phase":"validation")",
                             R"("phase":"rest")",
                             R"("phase":5)",
                             R"("id":5,"extra":[{}])"})
      add(begin + (*rest == 0 ? "" : ",") + rest + "}");
  }
  for (const char* line : {"", "null", "[]", "{}", R"({"type":null})", R"({"type":5,"v":1})",
                           R"({"type":"a word that is longer than forty characters, by far"})"})
    add(line);
  add(R"({"type":"hello","v":1,"job":1,"token":")" + std::string(4'097, 'x') + "\"}");
  add(R"({"type":")" + std::string(4'097, 'x') + "\"}");
  expect_recorded("training.txt", all);

  const auto report = parse_from_code(
      R"({"type":"report","iteration":7,"epoch":1,"loss":2.5,"seconds":3,"batch":4,"samples":5,)"
      R"("sub_steps":6,"noise_scale":8.5,"metrics":{"a":1,"b":"x","long)" +
      std::string(64, 'x') + R"(":1}})");
  ASSERT_TRUE(report);
  const auto& said = std::get<Report>(*report);
  EXPECT_EQ(said.epoch, 1);
  EXPECT_EQ(said.samples, 5);
  EXPECT_EQ(said.sub_steps, 6);
  EXPECT_EQ(said.noise_scale, 8.5);
  EXPECT_EQ(said.metrics, (std::map<std::string, double>{{"a", 1}}));
}

}  // namespace
}  // namespace berth::test
